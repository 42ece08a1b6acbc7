import { ActionIcon, Tooltip } from "@mantine/core";
import type { Token } from "@/api/types";
import { formatAge, formatDay, formatMoment } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { IconRefresh, IconX } from "@/ui/icons";
import classes from "./Credentials.module.css";

/** A token is marked when it expires in fewer days than this. */
const WARNING_DAYS = 14;
const DAY_MS = 86_400_000;

/** Whether a token is neither revoked nor past its end. */
export function isValid({ revoked_at, expires_at }: Token): boolean {
  return revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now());
}

function Ended({ how, at }: { how: string; at: string }) {
  return (
    <span title={formatMoment(at)}>
      {how} <span className={classes.date}>{formatDay(at)}</span>
    </span>
  );
}

function End({ token }: { token: Token }) {
  if (token.revoked_at !== null) return <Ended how="revoked" at={token.revoked_at} />;
  if (token.expires_at === null) return "never";
  const left = (Date.parse(token.expires_at) - Date.now()) / DAY_MS;
  if (left <= 0) return <Ended how="expired" at={token.expires_at} />;
  return (
    <span
      title={formatMoment(token.expires_at)}
      className={left < WARNING_DAYS ? classes.soon : undefined}
    >
      {left < WARNING_DAYS ? `in ${Math.ceil(left)} d` : formatDay(token.expires_at)}
    </span>
  );
}

function LastUse({ token }: { token: Token }) {
  if (!token.last_used_at) return <span className="faint">never</span>;
  return (
    <span title={formatMoment(token.last_used_at)}>
      {formatAge(token.last_used_at)} <span className="mono muted">{token.last_used_address}</span>
    </span>
  );
}

export function tokenColumns(
  rotate: (token: Token) => void,
  revoke: (token: Token) => void,
): Column<Token>[] {
  return [
    {
      id: "name",
      header: "Token",
      cell: (token) => (
        <span className={classes.token}>
          <b className="clip">{token.name}</b>
          {token.previous_until && Date.parse(token.previous_until) > Date.now() && (
            <span
              className="muted"
              title={`The secret of before the rotation is valid until ${formatMoment(token.previous_until)}`}
            >
              2 secrets
            </span>
          )}
        </span>
      ),
    },
    {
      id: "scopes",
      header: "Scopes",
      width: 148,
      hide: "narrow",
      cell: (token) => token.scopes.join(", "),
    },
    {
      id: "created",
      header: "Created",
      width: 124,
      hide: "medium",
      cell: (token) => (
        <span title={formatMoment(token.created_at)}>{formatDay(token.created_at)}</span>
      ),
    },
    {
      id: "ends",
      header: "Ends",
      width: "min(160px, 36%)",
      wrap: true,
      cell: (token) => <End token={token} />,
    },
    {
      id: "used",
      header: "Last used",
      width: 200,
      hide: "narrow",
      cell: (token) => <LastUse token={token} />,
    },
    {
      id: "actions",
      header: "",
      width: 84,
      align: "right",
      cell: (token) =>
        isValid(token) && (
          <span className={classes.actions}>
            <Tooltip label="Rotate: give it a new secret">
              <ActionIcon
                size={22}
                aria-label={`Rotate ${token.name}`}
                onClick={() => rotate(token)}
              >
                <IconRefresh size={14} />
              </ActionIcon>
            </Tooltip>
            <Tooltip label="Revoke">
              <ActionIcon
                size={22}
                aria-label={`Revoke ${token.name}`}
                onClick={() => revoke(token)}
              >
                <IconX size={14} />
              </ActionIcon>
            </Tooltip>
          </span>
        ),
    },
  ];
}
