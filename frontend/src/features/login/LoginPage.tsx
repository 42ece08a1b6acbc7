import { SegmentedControl } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { previewLink, redeem } from "@/api/actions";
import { ApiError } from "@/api/client";
import { keys, loginOptionsQuery } from "@/api/queries";
import type { LinkPreview, Session } from "@/api/types";
import { rememberUser } from "@/lib/lastUser";
import { Logo } from "@/ui/Logo";
import { Refusal } from "@/ui/Refusal";
import { readCode } from "./code";
import { LinkForm, PasswordForm, refusalOf } from "./forms";
import classes from "./LoginPage.module.css";
import { InvitationForm, NewPasswordForm } from "./linkForms";

const route = getRouteApi("/login");

/** Removes the code from the URL, so that the browser's history does not keep it. */
function takeCode(): string | null {
  const { hash, pathname, search } = window.location;
  if (!hash.includes("code=")) return null;
  window.history.replaceState(null, "", pathname + search);
  return readCode(hash);
}

function useEnter() {
  const client = useQueryClient();
  const router = useRouter();
  const { to } = route.useSearch();
  return async (session: Session) => {
    client.setQueryData(keys.session, session);
    rememberUser(session.user);
    await router.navigate({
      href: to?.startsWith("/") && !to.startsWith("//") ? to : "/",
      replace: true,
    });
  };
}

/** A link that was opened, and its purpose. */
export interface OpenedLink {
  code: string;
  preview: LinkPreview;
}

/**
 * Takes the link that opened the page, or one that is opened while the page is shown. A login link
 * logs in at once; an invitation and a link for a new password first show their form.
 */
function useLink(enter: (session: Session) => Promise<void>) {
  const { reset } = route.useSearch();
  const [opened, setOpened] = useState<OpenedLink | null>(null);
  const link = useMutation({
    mutationFn: async (code: string) => {
      const preview = await previewLink(code);
      if (preview.kind === "login" && !reset) await enter(await redeem(code));
      else setOpened({ code, preview });
    },
  });
  const { mutate } = link;
  useEffect(() => {
    const look = () => {
      const code = takeCode();
      if (code !== null) mutate(code);
    };
    look();
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, [mutate]);
  return { ...link, opened };
}

const TITLES: Partial<Record<string, string>> = {
  invitation_used: "The invitation was used",
  invitation_expired: "The invitation has expired",
  invitation_revoked: "The invitation was revoked",
};

function refusedTitle(error: Error): string {
  return (error instanceof ApiError && TITLES[error.code]) || "The link was refused";
}

export function LoginPage() {
  const enter = useEnter();
  const link = useLink(enter);
  const options = useQuery(loginOptionsQuery);
  const [way, setWay] = useState<string | null>(null);
  useEffect(() => {
    document.title = "Log in · Palestra";
  }, []);
  const passwords = options.data?.password ?? false;
  if (link.opened) return <OpenedPage {...link.opened} enter={enter} />;
  const shown = way ?? (passwords ? "password" : "link");
  return (
    <Card>
      {link.isPending && <p className="muted">Logging in with the link…</p>}
      {link.isError && <Refusal {...refusalOf(link.error)} title={refusedTitle(link.error)} />}
      {passwords && (
        <SegmentedControl
          fullWidth
          value={shown}
          onChange={setWay}
          aria-label="How to log in"
          data={[
            { value: "password", label: "Password" },
            { value: "link", label: "Login link" },
          ]}
        />
      )}
      {options.isPending ? null : shown === "password" ? (
        <PasswordForm enter={enter} />
      ) : (
        <LinkForm enter={enter} open={link.mutate} />
      )}
    </Card>
  );
}

/** Shows the form of a link that needs input before it logs in. */
function OpenedPage({ code, preview, enter }: OpenedLink & Enter) {
  return (
    <Card>
      {preview.kind === "invitation" ? (
        <InvitationForm code={code} preview={preview} enter={enter} />
      ) : (
        <NewPasswordForm code={code} preview={preview} enter={enter} />
      )}
    </Card>
  );
}

interface Enter {
  enter: (session: Session) => Promise<void>;
}

function Card({ children }: { children: ReactNode }) {
  return (
    <main className={classes.page} id="main">
      <div className={classes.card}>
        <div className={classes.brand}>
          <Logo size={34} />
          <div>
            <h1>Palestra</h1>
            <p className="muted">where agents train</p>
          </div>
        </div>
        <div className={classes.meander} aria-hidden="true" />
        {children}
      </div>
    </main>
  );
}
