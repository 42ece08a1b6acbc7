import { Button } from "@mantine/core";
import type { BoundMember } from "./environment";
import { showValue, useForm } from "./form";
import classes from "./Submit.module.css";

/** What left the form with its former environment, or is still there without it. */
export function EnvironmentNotice() {
  const { environment, isFrozen } = useForm();
  const { name, left, staying, putBack, removeStaying } = environment;
  return (
    <div role="status" className={classes.notices}>
      {left.length > 0 && (
        <p className={classes.notice}>
          <span>
            Left with {name}, which they belong to: <Members members={left} />
          </span>
          <Button variant="default" size="compact-xs" disabled={isFrozen} onClick={putBack}>
            Put back
          </Button>
        </p>
      )}
      {staying.length > 0 && (
        <p className={classes.notice}>
          <span>
            Still those of {name}: <Members members={staying} />
          </span>
          <Button variant="default" size="compact-xs" disabled={isFrozen} onClick={removeStaying}>
            Remove
          </Button>
        </p>
      )}
    </div>
  );
}

function Members({ members }: { members: readonly BoundMember[] }) {
  return members.map(({ path, value }, index) => (
    <span key={path.join(".")}>
      {index > 0 && ", "}
      <code>{path.slice(1).join(".")}</code>
      {typeof value === "number" && ` ${showValue(value)}`}
    </span>
  ));
}
