import { SegmentedControl } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { redeem } from "@/api/actions";
import { keys, loginOptionsQuery } from "@/api/queries";
import type { Session } from "@/api/types";
import { rememberUser } from "@/lib/lastUser";
import { Logo } from "@/ui/Logo";
import { codeOf } from "./code";
import { LinkForm, PasswordForm, Refusal } from "./forms";
import classes from "./LoginPage.module.css";

const route = getRouteApi("/login");

/** Removes the code from the URL, so that the browser's history does not keep it. */
function takeCode(): string | null {
  const { hash, pathname, search } = window.location;
  if (!hash.includes("code=")) return null;
  window.history.replaceState(null, "", pathname + search);
  return codeOf(hash);
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

/**
 * Redeems a login link: the one that opened the page, or one that is opened while the page is
 * shown.
 */
function useLink(enter: (session: Session) => Promise<void>) {
  const link = useMutation({ mutationFn: (code: string) => redeem(code), onSuccess: enter });
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
  return link;
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
  const shown = way ?? (passwords ? "password" : "link");
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
        {link.isPending && <p className="muted">Logging in with the link…</p>}
        {link.isError && <Refusal error={link.error} title="The login link was refused" />}
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
          <LinkForm enter={enter} />
        )}
      </div>
    </main>
  );
}
