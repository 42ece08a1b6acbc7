/** The slug that the server makes of a name, if no other project has it. */
export function makeSlug(name: string): string {
  return name
    .normalize("NFKD")
    .replace(/[^\0-\x7f]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 56)
    .replace(/^-+|-+$/g, "");
}
