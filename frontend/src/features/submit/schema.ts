/**
 * Reads the JSON Schema of a submission: which fields an object of it has, and of which kind. Covers
 * the keywords that the schema uses; a member of any other kind is edited as YAML.
 */
export interface Schema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  default?: unknown;
  description?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  maxLength?: number;
}

export type Kind =
  | "text"
  | "integer"
  | "number"
  | "switch"
  /** One of `choices`. */
  | "choice"
  /** One of `choices`, or a whole number. */
  | "choiceOrInteger"
  /** Several of `choices`. */
  | "choices"
  | "integers"
  /** Several texts without commas. */
  | "texts"
  /** An object with fields of its own. */
  | "object"
  /** A list of objects, each with the fields of one variant. */
  | "variants"
  /** Anything else, written as YAML. */
  | "yaml";

export interface Field {
  name: string;
  kind: Kind;
  /** Schema of the value, of `object` without `null`. */
  schema: Schema;
  description: string;
  isRequired: boolean;
  /** Whether the value may be `null`. */
  isNullable: boolean;
  fallback: unknown;
  choices: readonly string[];
}

/** Returns the schema that `schema` refers to, or itself. */
export function resolve(root: Schema, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const { $ref, ...beside } = schema;
  const names = $ref.replace(/^#\//, "").split("/");
  const found = names.reduce<unknown>(
    (at, name) => (at as Record<string, unknown> | undefined)?.[name],
    root,
  );
  return { ...resolve(root, (found ?? {}) as Schema), ...beside };
}

/** Returns the variant of a discriminated union that a value is of; `null` if of none. */
export function chooseVariant(root: Schema, schema: Schema, value: unknown): Schema | null {
  const { discriminator } = schema;
  if (discriminator === undefined) return null;
  const tag = (value as Record<string, unknown> | null | undefined)?.[discriminator.propertyName];
  const reference = discriminator.mapping[String(tag)];
  return reference === undefined ? null : resolve(root, { $ref: reference });
}

/** The schemas of a union that has no discriminator of its own. */
export function listOptions(root: Schema, schema: Schema): Schema[] {
  if (schema.discriminator !== undefined) return [];
  return (schema.anyOf ?? schema.oneOf ?? []).map((one) => resolve(root, one));
}

/** The fields of an object, without constants. */
export function listFields(root: Schema, schema: Schema): Field[] {
  const object = resolve(root, schema);
  const required = object.required ?? [];
  const fields = Object.entries(object.properties ?? {}).flatMap(([name, member]) => {
    const field = readField(root, name, member, required.includes(name));
    return field === null ? [] : [field];
  });
  return fields.sort((one, other) => chooseRow(one.kind) - chooseRow(other.kind));
}

/** Inputs come first, then switches, then what is as wide as the form. */
function chooseRow(kind: Kind): number {
  if (kind === "switch") return 1;
  return kind === "object" || kind === "variants" || kind === "yaml" ? 2 : 0;
}

function readField(root: Schema, name: string, member: Schema, isRequired: boolean): Field | null {
  const given = resolve(root, member);
  const { schema, isNullable } = withoutNull(root, given);
  const { kind, choices } = chooseKind(root, schema);
  if (schema.const !== undefined) return null;
  return {
    name,
    kind,
    schema,
    description: describe(member.description ?? given.description ?? schema.description ?? ""),
    isRequired,
    isNullable,
    fallback: readDefault(root, given),
    choices,
  };
}

/** Returns a description in the words of the form, which shows `null` as none. */
function describe(text: string): string {
  return text.replaceAll("`null`", "`none`");
}

/** The default of a member; a member that may be `null` is `null` where the schema names none. */
function readDefault(root: Schema, schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  return listOptions(root, schema).some((one) => one.type === "null") ? null : undefined;
}

/** The schema of the values other than `null`. */
function withoutNull(root: Schema, schema: Schema): { schema: Schema; isNullable: boolean } {
  const options = listOptions(root, schema);
  const rest = options.filter((one) => one.type !== "null");
  const [only] = rest;
  if (options.length === rest.length) return { schema, isNullable: false };
  return {
    schema: rest.length === 1 && only !== undefined ? only : { anyOf: rest },
    isNullable: true,
  };
}

function chooseKind(root: Schema, schema: Schema): { kind: Kind; choices: readonly string[] } {
  const choices = (schema.enum ?? []).map(String);
  if (choices.length > 0) return { kind: "choice", choices };
  const options = listOptions(root, schema);
  const listed = options.find((one) => one.enum !== undefined);
  if (options.length === 2 && listed && options.some((one) => one.type === "integer"))
    return { kind: "choiceOrInteger", choices: (listed.enum ?? []).map(String) };
  const items = resolve(root, schema.items ?? {});
  if (schema.type === "array") {
    if (items.type === "integer") return { kind: "integers", choices };
    if (items.type === "string" && items.enum === undefined) return { kind: "texts", choices };
    if (items.enum !== undefined) return { kind: "choices", choices: items.enum.map(String) };
    if (items.discriminator !== undefined || items.properties !== undefined)
      return { kind: "variants", choices: Object.keys(items.discriminator?.mapping ?? {}) };
  }
  if (schema.properties !== undefined) return { kind: "object", choices };
  const simple: Record<string, Kind> = {
    string: "text",
    integer: "integer",
    number: "number",
    boolean: "switch",
  };
  return { kind: simple[schema.type ?? ""] ?? "yaml", choices };
}

/** Returns a value without the members that equal their default. */
export function pruneDefaults(root: Schema, schema: Schema, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const object = chooseVariant(root, schema, value) ?? resolve(root, schema);
  const properties = object.properties ?? {};
  const required = object.required ?? [];
  const kept = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const own = properties[name];
    if (own === undefined) return [[name, member]];
    const resolved = resolve(root, own);
    const fallback = readDefault(root, resolved);
    const isDefault = isEqual(member, fallback) || (fallback !== null && isEqual(member, {}));
    if (!required.includes(name) && isDefault) {
      // The tag of a union stays, since the variant is chosen by it.
      return resolved.const === undefined ? [] : [[name, member]];
    }
    return [[name, pruneDefaults(root, findUnion(root, resolved, member), member)]];
  });
  return Object.fromEntries(kept);
}

/** Returns a value with the defaults of the members that it leaves out. */
export function fillDefaults(root: Schema, schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = resolve(root, schema).items ?? {};
    return value.map((item) => fillDefaults(root, findUnion(root, items, item), item));
  }
  if (typeof value !== "object" || value === null) return value;
  const object = chooseVariant(root, schema, value) ?? resolve(root, schema);
  const missing = Object.entries(object.properties ?? {}).flatMap(
    ([name, own]): [string, unknown][] => {
      const fallback = readFilling(root, resolve(root, own));
      return name in value || fallback === undefined ? [] : [[name, fallback]];
    },
  );
  const members = Object.entries({ ...value, ...Object.fromEntries(missing) });
  return Object.fromEntries(
    members.map(([name, member]) => {
      const own = resolve(root, object.properties?.[name] ?? {});
      return [name, fillDefaults(root, findUnion(root, own, member), member)];
    }),
  );
}

/** The value that a member has where it is left out; objects and lists are empty by default. */
function readFilling(root: Schema, schema: Schema): unknown {
  const fallback = schema.const ?? readDefault(root, schema);
  if (fallback !== undefined) return fallback;
  return schema.type === "object" ? {} : schema.type === "array" ? [] : undefined;
}

/** The part of a union that a value is of: a nested union, or the object beside `null`. */
export function findUnion(root: Schema, schema: Schema, value: unknown): Schema {
  const own = chooseVariant(root, resolve(root, schema), value);
  if (own !== null) return own;
  const options = listOptions(root, resolve(root, schema));
  if (options.length === 0) return schema;
  const variant = options.map((one) => chooseVariant(root, one, value)).find((one) => one !== null);
  return variant ?? options.find((one) => one.properties !== undefined) ?? schema;
}

/** Whether two JSON values are equal, whatever the order of their members. */
export function isEqual(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  const [a, b] = [one as Record<string, unknown>, other as Record<string, unknown>];
  return [...names].every((name) => isEqual(a[name], b[name]));
}
