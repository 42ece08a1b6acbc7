import { ActionIcon, Button, Collapse, Menu, Switch, UnstyledButton } from "@mantine/core";
import { useId, useState } from "react";
import { formatPlural } from "@/lib/format";
import { IconChevronRight, IconPlus, IconTrash } from "@/ui/icons";
import { Message } from "@/ui/Message";
import { ChoiceField } from "./ChoiceField";
import { findFault, isBelow } from "./faults";
import { nameMember, useForm, useMember } from "./form";
import classes from "./Submit.module.css";
import { chooseVariant, type Field, listFields, resolve, type Schema } from "./schema";
import { TypedField } from "./TypedField";
import type { Path } from "./text";
import { YamlField } from "./YamlField";

interface FieldsProps {
  schema: Schema;
  path: Path;
  /** Members shown at once, in this order; the others are below "More". All, where left out. */
  primary?: readonly string[];
  /** Members that are shown elsewhere. */
  without?: readonly string[];
}

/** The fields of an object. */
export function Fields({ schema, path, primary, without = [] }: FieldsProps) {
  const { root } = useForm();
  const fields = listFields(root, schema).filter((one) => !without.includes(one.name));
  const first = primary
    ? primary.flatMap((name) => fields.filter((one) => one.name === name))
    : fields;
  const more = fields.filter((one) => !first.includes(one));
  return (
    <>
      {first.length > 0 && <Grid fields={first} path={path} />}
      {more.length > 0 && <More fields={more} path={path} />}
    </>
  );
}

function Grid({ fields, path }: { fields: readonly Field[]; path: Path }) {
  return (
    <div className={classes.grid}>
      {fields.map((field) => (
        <FieldView key={field.name} field={field} path={[...path, field.name]} />
      ))}
    </div>
  );
}

/** The rarer fields, open where one is set or refused. */
function More({ fields, path }: { fields: readonly Field[]; path: Path }) {
  const { faults } = useForm();
  const [value] = useMember(path);
  const id = useId();
  const names = Object.keys((value as object | null | undefined) ?? {});
  const set = fields.filter((one) => names.includes(one.name)).length;
  const paths = fields.map((one) => [...path, one.name]);
  const isRefused = faults.some((fault) => isBelow(fault, paths));
  const [isAsked, setAsked] = useState(false);
  const isOpen = isAsked || isRefused;
  const first = fields.slice(0, 3).map((one) => nameMember(one.name).toLowerCase());
  const rest = fields.length - first.length;
  return (
    <div className={classes.more}>
      <UnstyledButton
        className={classes.moreButton ?? ""}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setAsked(!isOpen)}
      >
        <IconChevronRight size={14} data-open={isOpen || undefined} />
        {isOpen
          ? "Fewer settings"
          : `More: ${first.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`}
        {set > 0 && !isOpen && <span className={classes.count}>{set} set</span>}
      </UnstyledButton>
      <Collapse expanded={isOpen} id={id}>
        {isOpen && <Grid fields={fields} path={path} />}
      </Collapse>
    </div>
  );
}

function FieldView({ field, path }: { field: Field; path: Path }) {
  switch (field.kind) {
    case "switch":
    case "choice":
    case "choices":
    case "choiceOrInteger":
      return <ChoiceField field={field} path={path} />;
    case "object":
      return <ObjectField field={field} path={path} />;
    case "variants":
      return <VariantsField field={field} path={path} />;
    case "yaml":
      return <YamlField field={field} path={path} />;
    default:
      return <TypedField field={field} path={path} />;
  }
}

/** An object in an object; one that may be `null` has a switch. */
function ObjectField({ field, path }: { field: Field; path: Path }) {
  const { isFrozen, faults, root } = useForm();
  const [value, change] = useMember(path);
  const isOn = !field.isNullable || (value !== null && value !== undefined);
  const fault = isOn ? undefined : findFault(faults, path);
  const tag = Object.entries(resolve(root, field.schema).properties ?? {}).find(
    ([, one]) => one.const !== undefined,
  );
  const start = tag === undefined ? {} : { [tag[0]]: tag[1].const };
  return (
    <fieldset className={classes.nested}>
      {field.isNullable ? (
        <Switch
          label={nameMember(field.name)}
          description={<Message text={field.description} />}
          checked={isOn}
          disabled={isFrozen}
          error={fault}
          onChange={(event) => change(event.currentTarget.checked ? start : undefined)}
        />
      ) : (
        <legend>{nameMember(field.name)}</legend>
      )}
      {isOn && <Fields schema={field.schema} path={path} />}
    </fieldset>
  );
}

/** A list of objects, each of one of several kinds. */
function VariantsField({ field, path }: { field: Field; path: Path }) {
  const { root, isFrozen, faults } = useForm();
  const [value, change] = useMember(path);
  const items = resolve(root, field.schema.items ?? {});
  const list = (value === undefined ? (field.fallback ?? []) : value) as unknown;
  const shown = Array.isArray(list) ? (list as Record<string, unknown>[]) : [];
  const kinds = field.choices.length > 0 ? field.choices : [readOnlyTag(root, items)];
  const fault = findFault(faults, path, true);
  return (
    <fieldset className={classes.list}>
      <legend className="hidden-visually">{nameMember(field.name)}</legend>
      {field.description && <p className="faint">{field.description}</p>}
      {shown.map((item, place) => {
        const variant = chooseVariant(root, items, item) ?? items;
        const isWritten = value !== undefined;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the place is the item's identity
          <div key={place} className={classes.item}>
            <div className={classes.itemHead}>
              <b>{nameMember(String(item?.name ?? ""))}</b>
              <span className="faint grow">
                <Message text={(variant.description ?? "").split("\n\n")[0] ?? ""} />
              </span>
              <ActionIcon
                size={22}
                disabled={isFrozen}
                aria-label={`Remove ${String(item?.name ?? "item")}`}
                onClick={() => change(shown.filter((_, at) => at !== place))}
              >
                <IconTrash size={14} />
              </ActionIcon>
            </div>
            {isWritten && <Fields schema={variant} path={[...path, place]} />}
          </div>
        );
      })}
      {fault && <p className={classes.fault}>{fault}</p>}
      <Menu position="bottom-start">
        <Menu.Target>
          <Button
            variant="default"
            disabled={isFrozen}
            leftSection={<IconPlus size={14} />}
            style={{ alignSelf: "flex-start" }}
          >
            Add {field.name === "hooks" ? "a hook" : "an item"}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {kinds.map((kind) => (
            <Menu.Item key={kind} onClick={() => change([...shown, { name: kind }])}>
              {nameMember(kind)}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <span className="hidden-visually">{formatPlural(shown.length, "item")}</span>
    </fieldset>
  );
}

/** The tag of the only kind of items. */
function readOnlyTag(root: Schema, items: Schema): string {
  return String(resolve(root, items).properties?.name?.const ?? "item");
}
