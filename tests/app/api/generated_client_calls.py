"""Calls a server with a client that was generated from its OpenAPI document.

A test runs it beside the generated package `generated`. It logs in, makes a token, submits an
experiment and lists its runs, and prints what was answered as JSON.

Usage: python generated_client_calls.py URL LINK_CODE PASSWORD DEFINITION
"""

import json
import sys

from generated import AuthenticatedClient, Client
from generated.api.access import create_token, log_in, redeem_link
from generated.api.experiments import preview_submission, submit_experiment
from generated.api.runs import get_run, list_runs
from generated.models import (
    JobOptions,
    LoginRequest,
    PageRunView,
    Problem,
    RlDefinition,
    RunDetail,
    Scope,
    SessionView,
    SetupRequest,
    Submission,
    SubmissionPreview,
    SubmittedExperiment,
    TokenRequest,
    TokenView,
)

url, code, password, definition = sys.argv[1:]

with Client(url) as visitor:
    first = redeem_link.sync(client=visitor, body=SetupRequest(code=code, password=password))
    assert isinstance(first, SessionView), first

browser = Client(url, headers={"Origin": url})
refused = log_in.sync(client=browser, body=LoginRequest(user=first.user, password="not this one"))
assert isinstance(refused, Problem), refused
login = log_in.sync(client=browser, body=LoginRequest(user=first.user, password=password))
assert isinstance(login, SessionView), login
browser.get_httpx_client().headers["X-CSRF-Token"] = login.csrf_token
body = TokenRequest(name="generated", scopes=[Scope.READ, Scope.SUBMIT])
token = create_token.sync(client=browser, body=body)
assert isinstance(token, TokenView), token

with AuthenticatedClient(url, token.secret) as client:
    submission = Submission(
        definition=RlDefinition.from_dict(json.loads(definition)), options=JobOptions(seeds=[3, 4])
    )
    preview = preview_submission.sync(client=client, body=submission)
    assert isinstance(preview, SubmissionPreview), preview
    experiment = submit_experiment.sync(client=client, body=submission)
    assert isinstance(experiment, SubmittedExperiment), experiment
    page = list_runs.sync(client=client, experiment=experiment.id, sort="seed")
    assert isinstance(page, PageRunView), page
    run = get_run.sync(client=client, run_id=page.items[0].id)
    assert isinstance(run, RunDetail), run
    missing = get_run.sync(client=client, run_id="run_unknown")
    assert isinstance(missing, Problem), missing

json.dump(
    {
        "user": login.user,
        "refusal": refused.code,
        "missing": missing.code,
        "experiment": experiment.id,
        "previewed": [preview.experiment_id, preview.seeds],
        "definition": experiment.definition.to_dict(),
        "runs": [[one.id, one.seed, one.experiment_id] for one in page.items],
        "run": run.id,
    },
    sys.stdout,
)
