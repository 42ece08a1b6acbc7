import { ActionIcon, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouter } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { setCsrfToken } from "@/api/client";
import { sessionQuery } from "@/api/queries";
import { registerShortcuts } from "@/lib/shortcuts";
import { IconKeyboard, IconMoon, IconSun } from "@/ui/icons";
import { Logo } from "@/ui/Logo";
import { AccountMenu } from "./AccountMenu";
import { LiveBadge } from "./LiveBadge";
import { ProjectSwitcher } from "./ProjectSwitcher";
import { type Place, usePlaces } from "./places";
import classes from "./Shell.module.css";
import { ShortcutHelp } from "./ShortcutHelp";

/** The frame of every page: the rail at the left, the page at the right. */
export function Shell() {
  const [help, setHelp] = useState(false);
  useSessionGuard();
  const places = usePlaces();
  useGlobalKeys(places, () => setHelp(true));
  return (
    <div className={classes.shell}>
      <a href="#main" className={classes.skip}>
        Skip to content
      </a>
      <aside className={classes.rail}>
        <Link to="/" className={classes.brand}>
          <Logo />
          <span>Palestra</span>
        </Link>
        <div className={classes.meander} aria-hidden="true" />
        <ProjectSwitcher />
        <nav className={classes.nav} aria-label="Pages">
          {places.map(({ to, params, label, key, icon: Icon, exact, wide }) => (
            <Link
              key={to}
              to={to}
              params={params}
              className={`${classes.place} ${wide ? classes.wide : ""}`}
              activeOptions={{ exact: exact ?? false, includeSearch: false }}
              activeProps={{ "data-active": true }}
            >
              <Icon size={17} stroke={1.7} />
              <span className={classes.label}>{label}</span>
              <kbd className={classes.key}>g {key}</kbd>
            </Link>
          ))}
        </nav>
        <div className={classes.foot}>
          <LiveBadge />
          <div className={classes.tools}>
            <SchemeToggle />
            <Tooltip label="Keyboard shortcuts ( ? )">
              <ActionIcon aria-label="Keyboard shortcuts" onClick={() => setHelp(true)}>
                <IconKeyboard size={17} stroke={1.7} />
              </ActionIcon>
            </Tooltip>
            <AccountMenu />
          </div>
        </div>
      </aside>
      <div className={classes.content}>
        <Outlet />
      </div>
      <ShortcutHelp opened={help} onClose={() => setHelp(false)} />
    </div>
  );
}

function useSessionGuard() {
  const session = useQuery(sessionQuery);
  const router = useRouter();
  const token = session.data?.csrf_token ?? null;
  useEffect(() => setCsrfToken(token), [token]);
  useEffect(() => {
    if (session.isError) void router.invalidate();
  }, [session.isError, router]);
}

function useGlobalKeys(places: readonly Place[], showHelp: () => void) {
  const navigate = useNavigate();
  useEffect(() => {
    const jumps = places.map(({ to, params, key, label }) => ({
      keys: `g ${key}`,
      what: `Go to ${label.toLowerCase()}`,
      run: () => void navigate({ to, params }),
    }));
    return registerShortcuts([
      ...jumps,
      { keys: "?", what: "Show these shortcuts", run: showHelp },
    ]);
  }, [navigate, places, showHelp]);
}

function SchemeToggle() {
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  const { setColorScheme } = useMantineColorScheme();
  const other = scheme === "dark" ? "light" : "dark";
  return (
    <Tooltip label={`Switch to ${other}`}>
      <ActionIcon aria-label={`Switch to ${other} colours`} onClick={() => setColorScheme(other)}>
        {scheme === "dark" ? (
          <IconSun size={17} stroke={1.7} />
        ) : (
          <IconMoon size={17} stroke={1.7} />
        )}
      </ActionIcon>
    </Tooltip>
  );
}
