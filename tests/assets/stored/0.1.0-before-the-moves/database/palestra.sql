BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0009');
CREATE TABLE artifacts (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	folder VARCHAR(64) NOT NULL, 
	name VARCHAR(1024) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	blob_id VARCHAR(64), 
	created_at BIGINT NOT NULL, env_step BIGINT, 
	CONSTRAINT pk_artifacts PRIMARY KEY (id), 
	CONSTRAINT fk_artifacts_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_artifacts_blob_id FOREIGN KEY(blob_id) REFERENCES blobs (id), 
	CONSTRAINT fk_artifacts_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_artifacts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_artifacts_attempt_id_run_id_folder_name UNIQUE (attempt_id, run_id, folder, name)
);
INSERT INTO "artifacts" VALUES('art_01m83te31rekyv4rw9th8baxvp','prj_01m83te2tceyms815wkr2ne29a','run_01m83te2w2eds8b7sabryq739c','att_01m83te2ypfjnak639rha0c586','snp_01m83te30qfxw8262ws0vynxqx','state','snapshot',42,'a622e9ceb6dbf0d65153c66e6a0f35953703e40f1de50b0c1d03c2b9c4504412','18c6549088e2f3ed452031e33512743a',1795424717882002,NULL);
INSERT INTO "artifacts" VALUES('art_01m83te3dtfcf8ryrq3d7n7bk7','prj_01m83te2tceyms815wkr2ne29a','run_01m83te2w2eds8b7sabryq739c','att_01m83te2ypfjnak639rha0c586','snp_01m83te30qfxw8262ws0vynxqx','memory','snapshot',6,'a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa','5e319ca323fcdffbfbe4dab52e533a44',1795424718266992,NULL);
CREATE TABLE attempt_runs (
	attempt_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	training BOOLEAN NOT NULL, 
	live_training BOOLEAN NOT NULL, 
	snapshot_id VARCHAR(64), 
	CONSTRAINT pk_attempt_runs PRIMARY KEY (attempt_id, run_id), 
	CONSTRAINT fk_attempt_runs_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_attempt_runs_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_runs" VALUES('att_01m83te2ypfjnak639rha0c586','run_01m83te2w2eds8b7sabryq739c',1,1,0,NULL);
INSERT INTO "attempt_runs" VALUES('att_01m83te3h6fgevd1w1zbzmwcjx','run_01m83te2w2fsd8e54r31hhfwb1',1,1,0,NULL);
CREATE TABLE attempts (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64) NOT NULL, 
	number INTEGER NOT NULL, 
	worker_id VARCHAR(64) NOT NULL, 
	slot INTEGER NOT NULL, 
	boot_id VARCHAR(64) NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	outcome VARCHAR(16), 
	cause VARCHAR(32), 
	failure JSON, 
	resume_quality VARCHAR(16), 
	provenance JSON, 
	ran_with JSON NOT NULL, 
	lease_until BIGINT NOT NULL, 
	acked_seq BIGINT NOT NULL, 
	spooled_seq BIGINT NOT NULL, 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	trainer_pid BIGINT, 
	started_at BIGINT NOT NULL, 
	renewed_at BIGINT NOT NULL, 
	ended_at BIGINT, backlog JSON, gives_up BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_attempts PRIMARY KEY (id), 
	CONSTRAINT fk_attempts_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_attempts_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_attempts_worker_id FOREIGN KEY(worker_id) REFERENCES workers (id), 
	CONSTRAINT uq_attempts_job_id_number UNIQUE (job_id, number), 
	CONSTRAINT uq_attempts_token_hash UNIQUE (token_hash)
);
INSERT INTO "attempts" VALUES('att_01m83te2ypfjnak639rha0c586','prj_01m83te2tceyms815wkr2ne29a','job_01m83te2w7e3dse2et6n765taa',1,'wrk_01m83te2v8f74807njtpewbqe6',0,'boot-1','ecd7f04502d042a1d96fd34e56c4e57fae7a144ee851e82720097b60c1681b16','ended','paused','user',NULL,'fresh','{}','{"code": {"kind": "builtin"}, "palestra": "0.1.0", "packages": {}, "hardware": {}, "gpus": []}',1795424777802984,6,0,0,0,NULL,1795424717783994,1795424717802984,1795424718320985,'{"files": 0, "size": 0, "problem": null, "delivering": false}',0);
INSERT INTO "attempts" VALUES('att_01m83te3h6fgevd1w1zbzmwcjx','prj_01m83te2tceyms815wkr2ne29a','job_01m83te2w7ef6tpz22ez14v6f1',1,'wrk_01m83te2v8f74807njtpewbqe6',1,'boot-1','c07ea85dfc73b44289898340cd74963f11108e1aa1bdf342e0a1615df57fbedc','ended','succeeded','budget',NULL,'fresh','{}','{"code": {"kind": "builtin"}, "palestra": "0.1.0", "packages": {}, "hardware": {}, "gpus": []}',1795424778389985,0,0,0,0,NULL,1795424718375984,1795424718389985,1795424718412998,'{"files": 0, "size": 0, "problem": null, "delivering": false}',0);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	actor VARCHAR(96) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	object_type VARCHAR(32) NOT NULL, 
	object_id VARCHAR(96) NOT NULL, 
	data JSON NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id), 
	CONSTRAINT fk_audit_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
INSERT INTO "audit" VALUES(1,'prj_01m83te2tceyms815wkr2ne29a','user:usr_01m83te2ttf6ntq9edcd1w8vd0','worker.register','worker','wrk_01m83te2v8f74807njtpewbqe6','{"host": "host-1", "pool": "default", "version": "0.1.0"}',1795424717678020);
INSERT INTO "audit" VALUES(2,'prj_01m83te2tceyms815wkr2ne29a','user:usr_01m83te2ttf6ntq9edcd1w8vd0','experiment.create','experiment','cartpole-dqn-76aec5eba545f136','{"definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8"}',1795424717696004);
INSERT INTO "audit" VALUES(3,'prj_01m83te2tceyms815wkr2ne29a','worker:wrk_01m83te2v8f74807njtpewbqe6','job.move','job','job_01m83te2w7e3dse2et6n765taa','{"from": "queued", "to": "starting", "attempt": 1}',1795424717767981);
INSERT INTO "audit" VALUES(4,'prj_01m83te2tceyms815wkr2ne29a','attempt:att_01m83te2ypfjnak639rha0c586','job.move','job','job_01m83te2w7e3dse2et6n765taa','{"from": "starting", "to": "running", "attempt": 1}',1795424717806001);
INSERT INTO "audit" VALUES(5,'prj_01m83te2tceyms815wkr2ne29a','user:usr_01m83te2ttf6ntq9edcd1w8vd0','job.move','job','job_01m83te2w7e3dse2et6n765taa','{"from": "running", "to": "pausing", "attempt": 1, "cause": "user"}',1795424718299984);
INSERT INTO "audit" VALUES(6,'prj_01m83te2tceyms815wkr2ne29a','attempt:att_01m83te2ypfjnak639rha0c586','job.move','job','job_01m83te2w7e3dse2et6n765taa','{"from": "pausing", "to": "paused", "attempt": 1, "cause": "user"}',1795424718328992);
INSERT INTO "audit" VALUES(7,'prj_01m83te2tceyms815wkr2ne29a','worker:wrk_01m83te2v8f74807njtpewbqe6','job.move','job','job_01m83te2w7ef6tpz22ez14v6f1','{"from": "queued", "to": "starting", "attempt": 1}',1795424718358000);
INSERT INTO "audit" VALUES(8,'prj_01m83te2tceyms815wkr2ne29a','attempt:att_01m83te3h6fgevd1w1zbzmwcjx','job.move','job','job_01m83te2w7ef6tpz22ez14v6f1','{"from": "starting", "to": "running", "attempt": 1}',1795424718393003);
INSERT INTO "audit" VALUES(9,'prj_01m83te2tceyms815wkr2ne29a','attempt:att_01m83te3h6fgevd1w1zbzmwcjx','job.move','job','job_01m83te2w7ef6tpz22ez14v6f1','{"from": "running", "to": "succeeded", "attempt": 1, "cause": "budget"}',1795424718421005);
CREATE TABLE blobs (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_blobs PRIMARY KEY (id), 
	CONSTRAINT fk_blobs_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_blobs_project_id_sha256_size UNIQUE (project_id, sha256, size)
);
INSERT INTO "blobs" VALUES('18c6549088e2f3ed452031e33512743a','prj_01m83te2tceyms815wkr2ne29a','a622e9ceb6dbf0d65153c66e6a0f35953703e40f1de50b0c1d03c2b9c4504412',42,1795424717919982);
INSERT INTO "blobs" VALUES('5e319ca323fcdffbfbe4dab52e533a44','prj_01m83te2tceyms815wkr2ne29a','a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa',6,1795424718280994);
CREATE TABLE epoch_stats (
	attempt_id VARCHAR(64) NOT NULL, 
	seq BIGINT NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_epoch_stats PRIMARY KEY (attempt_id, seq), 
	CONSTRAINT fk_epoch_stats_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_epoch_stats_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "epoch_stats" VALUES('att_01m83te2ypfjnak639rha0c586',5,'run_01m83te2w2eds8b7sabryq739c',1,'{"run":"run_01m83te2w2eds8b7sabryq739c","type":"experiment_stats","total_epoch":1,"total_itr":5,"total_env_steps":40,"last_episode":null,"update":3,"episode":2,"wall":1.0}');
CREATE TABLE evaluations (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	snapshot_id VARCHAR(64), 
	fence BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	score FLOAT, 
	superseded BOOLEAN NOT NULL, 
	body TEXT NOT NULL, 
	created_at BIGINT NOT NULL, source VARCHAR(16) DEFAULT 'evaluation' NOT NULL, 
	CONSTRAINT pk_evaluations PRIMARY KEY (id), 
	CONSTRAINT fk_evaluations_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_evaluations_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_evaluations_attempt_id_seq UNIQUE (attempt_id, seq)
);
INSERT INTO "evaluations" VALUES('evl_01m83te30efxnv02e9wpt7zk1f','prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','att_01m83te2ypfjnak639rha0c586',NULL,1,4,40,0,12.5,0,'{"run":"run_01m83te2w2eds8b7sabryq739c","type":"evaluation","env_step":40,"update":0,"episode":1,"wall":1.0,"episodes":1,"mean":12.5,"median":12.5,"stdev":0.0,"min":12.5,"max":12.5,"length_mean":1.0,"length_median":1.0,"length_stdev":1.0,"length_min":1.0,"length_max":1.0,"returns":[12.5],"success_rate":null,"seed":7,"snapshot_id":null,"final":false,"source":"evaluation","metrics":{}}',1795424717838992,'evaluation');
CREATE TABLE events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id VARCHAR(64), 
	type VARCHAR(16) NOT NULL, 
	experiment_id VARCHAR(64), 
	run_id VARCHAR(64), 
	job_id VARCHAR(64), 
	data JSON NOT NULL, 
	at BIGINT NOT NULL
);
INSERT INTO "events" VALUES(1,'prj_01m83te2tceyms815wkr2ne29a','worker',NULL,NULL,NULL,'{"id": "wrk_01m83te2v8f74807njtpewbqe6", "name": "w1", "pool": "default", "host": "host-1", "state": "online", "version": "0.1.0", "slots": [{"index": 0, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 1, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 2, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 3, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 4, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 5, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 6, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 7, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 8, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 9, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 10, "attempt_id": null, "job_id": null, "run_ids": []}, {"index": 11, "attempt_id": null, "job_id": null, "run_ids": []}], "gpus": [], "registered_at": "2026-11-23T09:05:17.673996Z", "last_heartbeat_at": "2026-11-23T09:05:17.673996Z"}',1795424717684014);
INSERT INTO "events" VALUES(2,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "job_01m83te2w7e3dse2et6n765taa", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2eds8b7sabryq739c"], "schedule": "train", "state": "queued", "cause": null, "failure": null, "waiting": "A worker was asked to start it.", "not_uploaded": null, "position": 1, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 0, "worker_id": null, "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": null, "finished_at": null}',1795424717745008);
INSERT INTO "events" VALUES(3,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "job_01m83te2w7ef6tpz22ez14v6f1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2fsd8e54r31hhfwb1"], "schedule": "train", "state": "queued", "cause": null, "failure": null, "waiting": "A worker was asked to start it.", "not_uploaded": null, "position": 2, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 0, "worker_id": null, "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": null, "finished_at": null}',1795424717745008);
INSERT INTO "events" VALUES(4,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "run_01m83te2w2eds8b7sabryq739c", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "queued", "cause": null, "failure": null, "fence": 0, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": null, "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7e3dse2et6n765taa", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": null, "finished_at": null}',1795424717745008);
INSERT INTO "events" VALUES(5,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "run_01m83te2w2fsd8e54r31hhfwb1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "queued", "cause": null, "failure": null, "fence": 0, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": null, "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7ef6tpz22ez14v6f1", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": null, "finished_at": null}',1795424717745008);
INSERT INTO "events" VALUES(6,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "queued", "runs": {"queued": 2}, "latest_evaluation": null, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424717745008);
INSERT INTO "events" VALUES(7,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "job_01m83te2w7e3dse2et6n765taa", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2eds8b7sabryq739c"], "schedule": "train", "state": "starting", "cause": null, "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": null, "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424717796989);
INSERT INTO "events" VALUES(8,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "run_01m83te2w2eds8b7sabryq739c", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7e3dse2et6n765taa", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424717796989);
INSERT INTO "events" VALUES(9,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "running", "runs": {"queued": 1, "running": 1}, "latest_evaluation": null, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424717796989);
INSERT INTO "events" VALUES(10,'prj_01m83te2tceyms815wkr2ne29a','attempt','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "att_01m83te2ypfjnak639rha0c586", "job_id": "job_01m83te2w7e3dse2et6n765taa", "number": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "worker_name": "w1", "slot": 0, "state": "starting", "outcome": null, "cause": null, "failure": null, "fences": {"run_01m83te2w2eds8b7sabryq739c": 1}, "resumed_from": {"run_01m83te2w2eds8b7sabryq739c": null}, "resume_quality": null, "other_code": null, "started_at": "2026-11-23T09:05:17.783994Z", "ended_at": null, "acked_seq": 0}',1795424717797995);
INSERT INTO "events" VALUES(11,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "job_01m83te2w7e3dse2et6n765taa", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2eds8b7sabryq739c"], "schedule": "train", "state": "running", "cause": null, "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424717816985);
INSERT INTO "events" VALUES(12,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "run_01m83te2w2eds8b7sabryq739c", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7e3dse2et6n765taa", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424717816985);
INSERT INTO "events" VALUES(13,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "running", "runs": {"queued": 1, "running": 1}, "latest_evaluation": null, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424717817991);
INSERT INTO "events" VALUES(14,'prj_01m83te2tceyms815wkr2ne29a','points','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"series": "loss/td", "block": 1}',1795424717834003);
INSERT INTO "events" VALUES(15,'prj_01m83te2tceyms815wkr2ne29a','points','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"series": "episode/return", "block": 2}',1795424717834003);
INSERT INTO "events" VALUES(16,'prj_01m83te2tceyms815wkr2ne29a','points','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"series": "episode/length", "block": 3}',1795424717834003);
INSERT INTO "events" VALUES(17,'prj_01m83te2tceyms815wkr2ne29a','log','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"block": 1}',1795424717834003);
INSERT INTO "events" VALUES(18,'prj_01m83te2tceyms815wkr2ne29a','evaluation','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "evl_01m83te30efxnv02e9wpt7zk1f", "run_id": "run_01m83te2w2eds8b7sabryq739c", "job_id": "job_01m83te2w7e3dse2et6n765taa", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "snapshot_id": null, "env_step": 40, "update": 0, "episode": 1, "wall": 1.0, "episodes": 1, "mean": 12.5, "median": 12.5, "stdev": 0.0, "min": 12.5, "max": 12.5, "length_mean": 1.0, "length_median": 1.0, "length_stdev": 1.0, "length_min": 1.0, "length_max": 1.0, "success_rate": null, "returns": [12.5], "metrics": {}, "seed": 7, "final": false, "source": "evaluation", "superseded": false, "created_at": "2026-11-23T09:05:17.838992Z"}',1795424717843016);
INSERT INTO "events" VALUES(19,'prj_01m83te2tceyms815wkr2ne29a','stats','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"total_epoch": 1, "total_itr": 5, "total_env_steps": 40, "last_episode": null, "update": 3, "episode": 2, "wall": 1.0, "attempt_id": "att_01m83te2ypfjnak639rha0c586", "fence": 1, "seq": 5}',1795424717843016);
INSERT INTO "events" VALUES(20,'prj_01m83te2tceyms815wkr2ne29a','snapshot','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c',NULL,'{"id": "snp_01m83te30qfxw8262ws0vynxqx", "run_id": "run_01m83te2w2eds8b7sabryq739c", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "state": "uploading", "reason": "periodic", "env_step": 40, "update": 0, "episode": 0, "fence": 1, "score": 12.5, "resume_exact": true, "best": false, "newest": false, "superseded": false, "size": 48, "files": [{"name": "memory", "size": 6, "sha256": "a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa", "artifact_id": null}, {"name": "state", "size": 42, "sha256": "a622e9ceb6dbf0d65153c66e6a0f35953703e40f1de50b0c1d03c2b9c4504412", "artifact_id": null}], "created_at": "2026-11-23T09:05:17.855005Z"}',1795424717869006);
INSERT INTO "events" VALUES(21,'prj_01m83te2tceyms815wkr2ne29a','snapshot','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c',NULL,'{"id": "snp_01m83te30qfxw8262ws0vynxqx", "run_id": "run_01m83te2w2eds8b7sabryq739c", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "state": "uploading", "reason": "periodic", "env_step": 40, "update": 0, "episode": 0, "fence": 1, "score": 12.5, "resume_exact": true, "best": false, "newest": false, "superseded": false, "size": 48, "files": [{"name": "memory", "size": 6, "sha256": "a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa", "artifact_id": null}, {"name": "state", "size": 42, "sha256": "a622e9ceb6dbf0d65153c66e6a0f35953703e40f1de50b0c1d03c2b9c4504412", "artifact_id": "art_01m83te31rekyv4rw9th8baxvp"}], "created_at": "2026-11-23T09:05:17.855005Z"}',1795424717927988);
INSERT INTO "events" VALUES(22,'prj_01m83te2tceyms815wkr2ne29a','snapshot','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c',NULL,'{"id": "snp_01m83te30qfxw8262ws0vynxqx", "run_id": "run_01m83te2w2eds8b7sabryq739c", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "state": "verified", "reason": "periodic", "env_step": 40, "update": 0, "episode": 0, "fence": 1, "score": 12.5, "resume_exact": true, "best": true, "newest": true, "superseded": false, "size": 48, "files": [{"name": "memory", "size": 6, "sha256": "a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa", "artifact_id": "art_01m83te3dtfcf8ryrq3d7n7bk7"}, {"name": "state", "size": 42, "sha256": "a622e9ceb6dbf0d65153c66e6a0f35953703e40f1de50b0c1d03c2b9c4504412", "artifact_id": "art_01m83te31rekyv4rw9th8baxvp"}], "created_at": "2026-11-23T09:05:17.855005Z"}',1795424718293989);
INSERT INTO "events" VALUES(23,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "job_01m83te2w7e3dse2et6n765taa", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2eds8b7sabryq739c"], "schedule": "train", "state": "pausing", "cause": "user", "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424718315996);
INSERT INTO "events" VALUES(24,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "run_01m83te2w2eds8b7sabryq739c", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": "user", "failure": null, "fence": 1, "progress": {"env_step": 49, "update": 3, "episode": 3, "fraction": 0.0049, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": {"id": "evl_01m83te30efxnv02e9wpt7zk1f", "run_id": "run_01m83te2w2eds8b7sabryq739c", "job_id": "job_01m83te2w7e3dse2et6n765taa", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "snapshot_id": null, "env_step": 40, "update": 0, "episode": 1, "wall": 1.0, "episodes": 1, "mean": 12.5, "median": 12.5, "stdev": 0.0, "min": 12.5, "max": 12.5, "length_mean": 1.0, "length_median": 1.0, "length_stdev": 1.0, "length_min": 1.0, "length_max": 1.0, "success_rate": null, "returns": [12.5], "metrics": {}, "seed": 7, "final": false, "source": "evaluation", "superseded": false, "created_at": "2026-11-23T09:05:17.838992Z"}, "best_evaluation": {"id": "evl_01m83te30efxnv02e9wpt7zk1f", "run_id": "run_01m83te2w2eds8b7sabryq739c", "job_id": "job_01m83te2w7e3dse2et6n765taa", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "snapshot_id": null, "env_step": 40, "update": 0, "episode": 1, "wall": 1.0, "episodes": 1, "mean": 12.5, "median": 12.5, "stdev": 0.0, "min": 12.5, "max": 12.5, "length_mean": 1.0, "length_median": 1.0, "length_stdev": 1.0, "length_min": 1.0, "length_max": 1.0, "success_rate": null, "returns": [12.5], "metrics": {}, "seed": 7, "final": false, "source": "evaluation", "superseded": false, "created_at": "2026-11-23T09:05:17.838992Z"}, "snapshots": {"written": 40, "verified": 40}, "not_uploaded": null, "job_id": "job_01m83te2w7e3dse2et6n765taa", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424718315996);
INSERT INTO "events" VALUES(25,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "running", "runs": {"queued": 1, "running": 1}, "latest_evaluation": {"runs": 1, "metric": null, "mean": 12.5, "stdev": null, "min": 12.5, "max": 12.5}, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424718315996);
INSERT INTO "events" VALUES(26,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "job_01m83te2w7e3dse2et6n765taa", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2eds8b7sabryq739c"], "schedule": "train", "state": "paused", "cause": "user", "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424718347016);
INSERT INTO "events" VALUES(27,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "run_01m83te2w2eds8b7sabryq739c", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "paused", "cause": "user", "failure": null, "fence": 1, "progress": {"env_step": 49, "update": 3, "episode": 3, "fraction": 0.0049, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": {"id": "evl_01m83te30efxnv02e9wpt7zk1f", "run_id": "run_01m83te2w2eds8b7sabryq739c", "job_id": "job_01m83te2w7e3dse2et6n765taa", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "snapshot_id": null, "env_step": 40, "update": 0, "episode": 1, "wall": 1.0, "episodes": 1, "mean": 12.5, "median": 12.5, "stdev": 0.0, "min": 12.5, "max": 12.5, "length_mean": 1.0, "length_median": 1.0, "length_stdev": 1.0, "length_min": 1.0, "length_max": 1.0, "success_rate": null, "returns": [12.5], "metrics": {}, "seed": 7, "final": false, "source": "evaluation", "superseded": false, "created_at": "2026-11-23T09:05:17.838992Z"}, "best_evaluation": {"id": "evl_01m83te30efxnv02e9wpt7zk1f", "run_id": "run_01m83te2w2eds8b7sabryq739c", "job_id": "job_01m83te2w7e3dse2et6n765taa", "attempt_id": "att_01m83te2ypfjnak639rha0c586", "snapshot_id": null, "env_step": 40, "update": 0, "episode": 1, "wall": 1.0, "episodes": 1, "mean": 12.5, "median": 12.5, "stdev": 0.0, "min": 12.5, "max": 12.5, "length_mean": 1.0, "length_median": 1.0, "length_stdev": 1.0, "length_min": 1.0, "length_max": 1.0, "success_rate": null, "returns": [12.5], "metrics": {}, "seed": 7, "final": false, "source": "evaluation", "superseded": false, "created_at": "2026-11-23T09:05:17.838992Z"}, "snapshots": {"written": 40, "verified": 40}, "not_uploaded": null, "job_id": "job_01m83te2w7e3dse2et6n765taa", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:17.767015Z", "finished_at": null}',1795424718347016);
INSERT INTO "events" VALUES(28,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "queued", "runs": {"paused": 1, "queued": 1}, "latest_evaluation": {"runs": 1, "metric": null, "mean": 12.5, "stdev": null, "min": 12.5, "max": 12.5}, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424718347016);
INSERT INTO "events" VALUES(29,'prj_01m83te2tceyms815wkr2ne29a','attempt','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','job_01m83te2w7e3dse2et6n765taa','{"id": "att_01m83te2ypfjnak639rha0c586", "job_id": "job_01m83te2w7e3dse2et6n765taa", "number": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "worker_name": "w1", "slot": 0, "state": "ended", "outcome": "paused", "cause": "user", "failure": null, "fences": {"run_01m83te2w2eds8b7sabryq739c": 1}, "resumed_from": {"run_01m83te2w2eds8b7sabryq739c": null}, "resume_quality": "fresh", "other_code": null, "started_at": "2026-11-23T09:05:17.783994Z", "ended_at": "2026-11-23T09:05:18.320985Z", "acked_seq": 6}',1795424718347982);
INSERT INTO "events" VALUES(30,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "job_01m83te2w7ef6tpz22ez14v6f1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2fsd8e54r31hhfwb1"], "schedule": "train", "state": "starting", "cause": null, "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": null, "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:18.355988Z", "finished_at": null}',1795424718386002);
INSERT INTO "events" VALUES(31,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "run_01m83te2w2fsd8e54r31hhfwb1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7ef6tpz22ez14v6f1", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:18.355988Z", "finished_at": null}',1795424718386002);
INSERT INTO "events" VALUES(32,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "running", "runs": {"paused": 1, "running": 1}, "latest_evaluation": {"runs": 1, "metric": null, "mean": 12.5, "stdev": null, "min": 12.5, "max": 12.5}, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424718386002);
INSERT INTO "events" VALUES(33,'prj_01m83te2tceyms815wkr2ne29a','attempt','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "att_01m83te3h6fgevd1w1zbzmwcjx", "job_id": "job_01m83te2w7ef6tpz22ez14v6f1", "number": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "worker_name": "w1", "slot": 1, "state": "starting", "outcome": null, "cause": null, "failure": null, "fences": {"run_01m83te2w2fsd8e54r31hhfwb1": 1}, "resumed_from": {"run_01m83te2w2fsd8e54r31hhfwb1": null}, "resume_quality": null, "other_code": null, "started_at": "2026-11-23T09:05:18.375984Z", "ended_at": null, "acked_seq": 0}',1795424718387008);
INSERT INTO "events" VALUES(34,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "job_01m83te2w7ef6tpz22ez14v6f1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2fsd8e54r31hhfwb1"], "schedule": "train", "state": "running", "cause": null, "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:18.355988Z", "finished_at": null}',1795424718409015);
INSERT INTO "events" VALUES(35,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "run_01m83te2w2fsd8e54r31hhfwb1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7ef6tpz22ez14v6f1", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:18.355988Z", "finished_at": null}',1795424718409015);
INSERT INTO "events" VALUES(36,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "running", "runs": {"paused": 1, "running": 1}, "latest_evaluation": {"runs": 1, "metric": null, "mean": 12.5, "stdev": null, "min": 12.5, "max": 12.5}, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424718409015);
INSERT INTO "events" VALUES(37,'prj_01m83te2tceyms815wkr2ne29a','job','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "job_01m83te2w7ef6tpz22ez14v6f1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "run_ids": ["run_01m83te2w2fsd8e54r31hhfwb1"], "schedule": "train", "state": "succeeded", "cause": "budget", "failure": null, "waiting": null, "not_uploaded": null, "position": null, "pool": "default", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "evaluate": null, "afresh": false, "allow_code_change": false, "attempts": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "created_at": "2026-11-23T09:05:17.704010Z", "created_by": "admin", "started_at": "2026-11-23T09:05:18.355988Z", "finished_at": "2026-11-23T09:05:18.419999Z"}',1795424718441001);
INSERT INTO "events" VALUES(38,'prj_01m83te2tceyms815wkr2ne29a','run','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "run_01m83te2w2fsd8e54r31hhfwb1", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "succeeded", "cause": "budget", "failure": null, "fence": 1, "progress": {"env_step": 0, "update": 0, "episode": 0, "fraction": 0.0, "env_steps_per_second": null}, "resume_quality": "fresh", "latest_evaluation": null, "best_evaluation": null, "snapshots": {"written": null, "verified": null}, "not_uploaded": null, "job_id": "job_01m83te2w7ef6tpz22ez14v6f1", "created_at": "2026-11-23T09:05:17.698981Z", "started_at": "2026-11-23T09:05:18.355988Z", "finished_at": "2026-11-23T09:05:18.419999Z"}',1795424718442007);
INSERT INTO "events" VALUES(39,'prj_01m83te2tceyms815wkr2ne29a','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "paused", "runs": {"paused": 1, "succeeded": 1}, "latest_evaluation": {"runs": 1, "metric": null, "mean": 12.5, "stdev": null, "min": 12.5, "max": 12.5}, "failures": [], "created_at": "2026-11-23T09:05:17.691980Z", "created_by": "admin", "archived_at": null}',1795424718442007);
INSERT INTO "events" VALUES(40,'prj_01m83te2tceyms815wkr2ne29a','attempt','cartpole-dqn-76aec5eba545f136','run_01m83te2w2fsd8e54r31hhfwb1','job_01m83te2w7ef6tpz22ez14v6f1','{"id": "att_01m83te3h6fgevd1w1zbzmwcjx", "job_id": "job_01m83te2w7ef6tpz22ez14v6f1", "number": 1, "worker_id": "wrk_01m83te2v8f74807njtpewbqe6", "worker_name": "w1", "slot": 1, "state": "ended", "outcome": "succeeded", "cause": "budget", "failure": null, "fences": {"run_01m83te2w2fsd8e54r31hhfwb1": 1}, "resumed_from": {"run_01m83te2w2fsd8e54r31hhfwb1": null}, "resume_quality": "fresh", "other_code": null, "started_at": "2026-11-23T09:05:18.375984Z", "ended_at": "2026-11-23T09:05:18.412998Z", "acked_seq": 0}',1795424718442007);
CREATE TABLE experiments (
	project_id VARCHAR(64) NOT NULL, 
	id VARCHAR(64) NOT NULL, 
	identity_hash VARCHAR(64) NOT NULL, 
	definition_hash VARCHAR(64) NOT NULL, 
	schema_version INTEGER NOT NULL, 
	definition TEXT NOT NULL, 
	code JSON NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	notes TEXT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	agent VARCHAR(64) NOT NULL, 
	env VARCHAR(128) NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	archived_at BIGINT, 
	CONSTRAINT pk_experiments PRIMARY KEY (project_id, id), 
	CONSTRAINT fk_experiments_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_experiments_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_experiments_project_id_identity_hash UNIQUE (project_id, identity_hash)
);
INSERT INTO "experiments" VALUES('prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136','76aec5eba545f136f162eb7074043e135288e8ba5035b96740d5c08c33c9ac03','81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8',2,'{"agent":{"activation":"relu","adam_epsilon":1e-08,"batch_size":64,"buffer_size":100000,"double":true,"dueling":false,"epsilon_decay_steps":10000,"epsilon_end":0.05,"epsilon_start":1.0,"gamma":0.99,"hidden_sizes":[64,64],"learning_rate":0.001,"learning_starts":1000,"loss":"huber","max_grad_norm":10.0,"n_step":1,"name":"dqn","noisy":false,"prioritized":null,"target_update_every":500,"train_every":1,"updates_per_train":1},"env":{"id":"CartPole-v1","kwargs":{},"max_episode_steps":null,"num_envs":1,"vectorization":"sync"},"evaluation":{"during_episode":true,"episodes":10,"every_env_steps":5000,"max_episode_steps":null,"steps":null},"export":{"formats":[]},"hooks":[{"name":"nan_guard","updates":100}],"kind":"rl","loop":{"env_steps":10000,"episodes":null,"epoch_env_steps":1000,"updates":null},"name":"CartPole DQN","notes":"","schema_version":2,"snapshot":{"every_env_steps":10000,"keep_best":true,"keep_last":2,"memory":"full"},"stop":{"success_evaluations":1,"success_score":null}}','{"kind": "builtin"}','CartPole DQN','','rl','dqn','CartPole-v1','usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717691980,NULL);
CREATE TABLE idempotency_keys (
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	request_hash VARCHAR(64) NOT NULL, 
	status INTEGER NOT NULL, 
	location VARCHAR(512), 
	body BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (project_id, user_id, "key"), 
	CONSTRAINT fk_idempotency_keys_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE TABLE job_runs (
	job_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, outcome VARCHAR(16), cause VARCHAR(32), failure JSON, ended_at BIGINT, 
	CONSTRAINT pk_job_runs PRIMARY KEY (job_id, run_id), 
	CONSTRAINT fk_job_runs_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_job_runs_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "job_runs" VALUES('job_01m83te2w7e3dse2et6n765taa','run_01m83te2w2eds8b7sabryq739c',0,NULL,NULL,NULL,NULL);
INSERT INTO "job_runs" VALUES('job_01m83te2w7ef6tpz22ez14v6f1','run_01m83te2w2fsd8e54r31hhfwb1',0,NULL,NULL,NULL,NULL);
CREATE TABLE jobs (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	schedule VARCHAR(32) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	cause VARCHAR(32), 
	failure JSON, 
	pool VARCHAR(64) NOT NULL, 
	priority INTEGER NOT NULL, 
	gpus INTEGER NOT NULL, 
	resources JSON NOT NULL, 
	limits JSON NOT NULL, 
	evaluate JSON, 
	work_order_version INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	infrastructure_failures INTEGER NOT NULL, 
	counted_failures INTEGER NOT NULL, 
	quick_deaths INTEGER NOT NULL, 
	not_before BIGINT, 
	rung_at BIGINT, 
	rings INTEGER NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	queued_at BIGINT NOT NULL, 
	started_at BIGINT, 
	finished_at BIGINT, afresh BOOLEAN DEFAULT 0 NOT NULL, allow_code_change BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_jobs_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_jobs_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE
);
INSERT INTO "jobs" VALUES('job_01m83te2w7e3dse2et6n765taa','prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136','train','paused','user',NULL,'default',0,0,'{"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}','{"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}',NULL,2,1,0,0,0,NULL,NULL,0,'usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717704010,1795424717704010,1795424717767015,NULL,0,0);
INSERT INTO "jobs" VALUES('job_01m83te2w7ef6tpz22ez14v6f1','prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136','train','succeeded','budget',NULL,'default',0,0,'{"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}','{"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}',NULL,2,1,0,0,0,NULL,NULL,0,'usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717704010,1795424717704010,1795424718355988,1795424718419999,0,0);
CREATE TABLE log_blocks (
	id INTEGER NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	first_line BIGINT NOT NULL, 
	last_line BIGINT NOT NULL, 
	total_bytes BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_log_blocks PRIMARY KEY (id), 
	CONSTRAINT fk_log_blocks_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_log_blocks_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_log_blocks_run_id_first_line UNIQUE (run_id, first_line)
);
INSERT INTO "log_blocks" VALUES(1,'run_01m83te2w2eds8b7sabryq739c','att_01m83te2ypfjnak639rha0c586',1,1,6,X'78018B8E562A2E49C92F2D51D231D433D051CA48CDC9C9578A8D0500605C0797');
CREATE TABLE login_links (
	code_hash VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	used_at BIGINT, 
	CONSTRAINT pk_login_links PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_links_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_login_links_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE login_sessions (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_used_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	CONSTRAINT pk_login_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_login_sessions_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_login_sessions_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_login_sessions_secret_hash UNIQUE (secret_hash)
);
CREATE TABLE memberships (
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_memberships PRIMARY KEY (project_id, user_id), 
	CONSTRAINT fk_memberships_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_memberships_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
INSERT INTO "memberships" VALUES('prj_01m83te2tceyms815wkr2ne29a','usr_01m83te2ttf6ntq9edcd1w8vd0','admin',1795424717664984);
INSERT INTO "memberships" VALUES('prj_01m83te2tceyms815wkr2ne29a','usr_01m83te2tte1n82svjkzwfp1xx','admin',1795424717664984);
CREATE TABLE projects (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_projects PRIMARY KEY (id), 
	CONSTRAINT uq_projects_name UNIQUE (name)
);
INSERT INTO "projects" VALUES('prj_01m83te2tceyms815wkr2ne29a','default',1795424717662007);
CREATE TABLE runs (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	seed BIGINT NOT NULL, 
	replicate INTEGER NOT NULL, 
	submission_id BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	cause VARCHAR(32), 
	failure JSON, 
	job_id VARCHAR(64), 
	resume_quality VARCHAR(16), 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	episode BIGINT NOT NULL, 
	env_steps_per_second FLOAT, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	finished_at BIGINT, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_runs_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE, 
	CONSTRAINT fk_runs_submission_id FOREIGN KEY(submission_id) REFERENCES submissions (id), 
	CONSTRAINT uq_runs_project_id_experiment_id_seed_replicate UNIQUE (project_id, experiment_id, seed, replicate)
);
INSERT INTO "runs" VALUES('run_01m83te2w2eds8b7sabryq739c','prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136',0,0,1,1,'paused','user',NULL,'job_01m83te2w7e3dse2et6n765taa','fresh',49,3,3,NULL,'usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717698981,1795424717767015,NULL);
INSERT INTO "runs" VALUES('run_01m83te2w2fsd8e54r31hhfwb1','prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136',1,0,1,1,'succeeded','budget',NULL,'job_01m83te2w7ef6tpz22ez14v6f1','fresh',0,0,0,NULL,'usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717698981,1795424718355988,1795424718419999);
CREATE TABLE series (
	id INTEGER NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	points BIGINT NOT NULL, 
	nonfinite BIGINT NOT NULL, 
	last_env_step BIGINT NOT NULL, 
	last_value VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_series PRIMARY KEY (id), 
	CONSTRAINT fk_series_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_series_run_id_name UNIQUE (run_id, name)
);
INSERT INTO "series" VALUES(1,'run_01m83te2w2eds8b7sabryq739c','loss/td',49,0,49,'49.0');
INSERT INTO "series" VALUES(2,'run_01m83te2w2eds8b7sabryq739c','episode/return',3,0,30,'3.0');
INSERT INTO "series" VALUES(3,'run_01m83te2w2eds8b7sabryq739c','episode/length',3,0,30,'10.0');
CREATE TABLE series_blocks (
	id INTEGER NOT NULL, 
	series_id BIGINT NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	first_seq BIGINT NOT NULL, 
	points INTEGER NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_series_blocks PRIMARY KEY (id), 
	CONSTRAINT fk_series_blocks_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_series_blocks_series_id FOREIGN KEY(series_id) REFERENCES series (id) ON DELETE CASCADE, 
	CONSTRAINT uq_series_blocks_series_id_attempt_id_first_seq UNIQUE (series_id, attempt_id, first_seq)
);
INSERT INTO "series_blocks" VALUES(1,1,'att_01m83te2ypfjnak639rha0c586',1,1,49,X'504342310100310000007801EDD2390A02411404D06F26460606060622222222EEBBCEB87B2C8FEC1104E7790627E84E1E957DAABA5689F4CAD0C06F8764B1C6BF7A28C35F4837A406CAD5C03B734F5E58659D0D36D9629B1D76D9639F030E39E298134E39E39C0B2EB9E29A1B6EB9E39E071E99312F7C314E32E32C332E32E32A336E32E32E331E32E32933D20EF17DFFDBE1037FEA374B');
INSERT INTO "series_blocks" VALUES(2,2,'att_01m83te2ypfjnak639rha0c586',1,1,3,X'504342310100030000007801E36262C00EB8A0C2E83476D50C0C8C5009741A22FCC11E3FCDE00091E7700000A4D70572');
INSERT INTO "series_blocks" VALUES(3,3,'att_01m83te2ypfjnak639rha0c586',1,1,3,X'5043423101020300000078014BCD2B8BCFCC4B49ADD029492DCACDCC4B2C494DE16262C00EB8A0C2E83476D50C0C8C5009749A907AECF21FEC21E2E8B48A03441C41030011800D01');
CREATE TABLE server_uptime (
	id INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	counted_at BIGINT NOT NULL, 
	CONSTRAINT pk_server_uptime PRIMARY KEY (id)
);
CREATE TABLE snapshot_files (
	snapshot_id VARCHAR(64) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	artifact_id VARCHAR(64), 
	CONSTRAINT pk_snapshot_files PRIMARY KEY (snapshot_id, name), 
	CONSTRAINT fk_snapshot_files_snapshot_id FOREIGN KEY(snapshot_id) REFERENCES snapshots (id) ON DELETE CASCADE
);
INSERT INTO "snapshot_files" VALUES('snp_01m83te30qfxw8262ws0vynxqx','state',42,'a622e9ceb6dbf0d65153c66e6a0f35953703e40f1de50b0c1d03c2b9c4504412','art_01m83te31rekyv4rw9th8baxvp');
INSERT INTO "snapshot_files" VALUES('snp_01m83te30qfxw8262ws0vynxqx','memory',6,'a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa','art_01m83te3dtfcf8ryrq3d7n7bk7');
CREATE TABLE snapshots (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason VARCHAR(16) NOT NULL, 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	episode BIGINT NOT NULL, 
	format_version INTEGER NOT NULL, 
	resume_exact BOOLEAN NOT NULL, 
	score FLOAT, 
	score_text VARCHAR(32), 
	superseded BOOLEAN NOT NULL, 
	pinned BOOLEAN NOT NULL, 
	size BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	verified_at BIGINT, 
	CONSTRAINT pk_snapshots PRIMARY KEY (id), 
	CONSTRAINT fk_snapshots_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_snapshots_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "snapshots" VALUES('snp_01m83te30qfxw8262ws0vynxqx','prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136','run_01m83te2w2eds8b7sabryq739c','att_01m83te2ypfjnak639rha0c586',1,6,'verified','periodic',40,0,0,1,1,12.5,'12.5',0,0,48,1795424717855005,1795424718286988);
CREATE TABLE submissions (
	id INTEGER NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	provenance JSON NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_submissions PRIMARY KEY (id), 
	CONSTRAINT fk_submissions_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_submissions_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE
);
INSERT INTO "submissions" VALUES(1,'prj_01m83te2tceyms815wkr2ne29a','cartpole-dqn-76aec5eba545f136','{}','usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717698015);
CREATE TABLE telemetry_batches (
	attempt_id VARCHAR(64) NOT NULL, 
	first_seq BIGINT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	digests BLOB NOT NULL, 
	received_at BIGINT NOT NULL, 
	CONSTRAINT pk_telemetry_batches PRIMARY KEY (attempt_id, first_seq), 
	CONSTRAINT fk_telemetry_batches_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE
);
INSERT INTO "telemetry_batches" VALUES('att_01m83te2ypfjnak639rha0c586',1,3,'d8f0afa1bb1bbd00a944838d787be25207e2dcc71b11709f04362b5ea9685937',X'DBCD17A2A7D04089A7FC58CC59DAB9F024C3389A62AC1E819D5B57EFD5AE1DFFAF4764ACCAAA99A371E26F0B0F308334',1795424717832998);
INSERT INTO "telemetry_batches" VALUES('att_01m83te2ypfjnak639rha0c586',4,5,'3dc3b7a95bd7ef71f9af3abebe20a026ef89a35bfd79163b12317d98bea5eb05',X'16D048E9AC089358D8D2EB2CBFCCDB1922671F6D92904D2D27DDFB77211E537B',1795424717842010);
INSERT INTO "telemetry_batches" VALUES('att_01m83te2ypfjnak639rha0c586',6,6,'98b062e6cf994c67c98b7ee7bb66cd0d03dd05fb2e4050bf60a574d75be816db',X'EA1B4B60F5D0B4590FCF92119D56995A',1795424717866995);
CREATE TABLE tokens (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	scopes JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	last_used_at BIGINT, 
	revoked_at BIGINT, parent_id VARCHAR(64), 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_tokens_secret_hash UNIQUE (secret_hash)
);
CREATE TABLE users (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	password_hash VARCHAR(256), 
	created_at BIGINT NOT NULL, 
	disabled_at BIGINT, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr_01m83te2ttf6ntq9edcd1w8vd0','admin',NULL,1795424717663013,NULL);
INSERT INTO "users" VALUES('usr_01m83te2tte1n82svjkzwfp1xx','bea',NULL,1795424717663013,NULL);
CREATE TABLE workers (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	pool VARCHAR(64) NOT NULL, 
	host VARCHAR(64) NOT NULL, 
	boot_id VARCHAR(64) NOT NULL, 
	pid BIGINT NOT NULL, 
	slots INTEGER NOT NULL, 
	gpus JSON NOT NULL, 
	gpu_count INTEGER NOT NULL, 
	work_order_versions JSON NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	hardware JSON NOT NULL, 
	packages JSON NOT NULL, 
	catalogue JSON NOT NULL, 
	silent_seconds FLOAT NOT NULL, 
	draining BOOLEAN NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	registered_at BIGINT NOT NULL, 
	last_heartbeat_at BIGINT NOT NULL, secret_hash VARCHAR(64), 
	CONSTRAINT pk_workers PRIMARY KEY (id), 
	CONSTRAINT fk_workers_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_workers_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_workers_project_id_name UNIQUE (project_id, name)
);
INSERT INTO "workers" VALUES('wrk_01m83te2v8f74807njtpewbqe6','prj_01m83te2tceyms815wkr2ne29a','w1','default','host-1','boot-1',100,12,'[]',0,'[1, 2]','0.1.0','{}','{}','{"agents": [{"name": "dqn", "parameters_schema": {}, "code": null, "action_spaces": ["discrete"]}, {"name": "ppo", "parameters_schema": {}, "code": null, "action_spaces": ["discrete", "box"]}, {"name": "tiny", "parameters_schema": {"type": "object", "properties": {"rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5}, "table": {"type": "array", "items": {"$ref": "#/$defs/cell"}}}, "$defs": {"cell": {"type": "integer"}}, "additionalProperties": false}, "code": {"kind": "entrypoint", "distribution": "tiny-agents", "version": "1.2.0", "digest": "7777777777777777777777777777777777777777777777777777777777777777"}, "action_spaces": ["discrete"]}], "model_functions": [{"name": "mlp", "parameters_schema": {}, "code": null}, {"name": "tiny", "parameters_schema": {"type": "object", "properties": {"rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5}, "table": {"type": "array", "items": {"$ref": "#/$defs/cell"}}}, "$defs": {"cell": {"type": "integer"}}, "additionalProperties": false}, "code": {"kind": "entrypoint", "distribution": "tiny-agents", "version": "1.2.0", "digest": "7777777777777777777777777777777777777777777777777777777777777777"}}], "input_functions": [{"name": "rows", "parameters_schema": {"properties": {"batch_size": {"type": "integer", "default": 32}}}, "code": null}], "environments": [{"id": "CartPole-v1", "observation_space": null, "action_space": {"kind": "discrete", "shape": [], "n": 2, "dtype": ""}, "max_episode_steps": null, "code": null}, {"id": "Pendulum-v1", "observation_space": null, "action_space": {"kind": "box", "shape": [1], "n": null, "dtype": ""}, "max_episode_steps": null, "code": null}], "schedules": ["train", "evaluate", "continuous_eval", "continuous_eval_on_train_data", "train_and_evaluate", "continuous_train_and_evaluate", "test", "export"], "imports": [], "export_formats": ["weights", "program"]}',30.0,0,'usr_01m83te2ttf6ntq9edcd1w8vd0',1795424717673996,1795424717673996,'fbc3591c8fe0d53e05b1da83ee03eadd9fa731b8b998fcc02f508135b36a1fe3');
CREATE INDEX ix_events_project_id_id ON events (project_id, id);
CREATE INDEX ix_audit_project_id_object_type_object_id_id ON audit (project_id, object_type, object_id, id);
CREATE INDEX ix_experiments_project_id_created_at_id ON experiments (project_id, created_at, id);
CREATE INDEX ix_experiments_project_id_name_id ON experiments (project_id, name, id);
CREATE INDEX ix_tokens_project_id_created_at_id ON tokens (project_id, created_at, id);
CREATE INDEX ix_workers_project_id_pool ON workers (project_id, pool);
CREATE INDEX ix_jobs_project_id_created_at_id ON jobs (project_id, created_at, id);
CREATE INDEX ix_jobs_project_id_experiment_id ON jobs (project_id, experiment_id);
CREATE INDEX ix_jobs_state_pool ON jobs (state, pool);
CREATE INDEX ix_submissions_project_id_experiment_id ON submissions (project_id, experiment_id);
CREATE UNIQUE INDEX uq_attempts_live_job ON attempts (job_id) WHERE state IN ('starting', 'running');
CREATE UNIQUE INDEX uq_attempts_live_slot ON attempts (worker_id, slot) WHERE state IN ('starting', 'running');
CREATE INDEX ix_runs_project_id_created_at_id ON runs (project_id, created_at, id);
CREATE INDEX ix_artifacts_blob_id ON artifacts (blob_id);
CREATE INDEX ix_artifacts_run_id_created_at_id ON artifacts (run_id, created_at, id);
CREATE INDEX ix_attempt_runs_run_id_fence ON attempt_runs (run_id, fence);
CREATE UNIQUE INDEX uq_attempt_runs_live_training ON attempt_runs (run_id) WHERE live_training;
CREATE INDEX ix_epoch_stats_run_id_fence_seq ON epoch_stats (run_id, fence, seq);
CREATE INDEX ix_evaluations_run_id_fence_seq ON evaluations (run_id, fence, seq);
CREATE INDEX ix_evaluations_snapshot_id ON evaluations (snapshot_id);
CREATE INDEX ix_job_runs_run_id ON job_runs (run_id);
CREATE INDEX ix_snapshots_run_id_fence_seq ON snapshots (run_id, fence, seq);
CREATE INDEX ix_series_blocks_series_id_fence_first_seq ON series_blocks (series_id, fence, first_seq);
CREATE INDEX ix_evaluations_job_id ON evaluations (job_id);
CREATE INDEX ix_tokens_parent_id ON tokens (parent_id);
CREATE UNIQUE INDEX ix_workers_secret_hash ON workers (secret_hash);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',40);
COMMIT;
