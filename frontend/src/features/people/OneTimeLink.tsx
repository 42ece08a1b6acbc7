import { CodeBlock } from "@/ui/Copy";

/** A link that is shown once, with its purpose. */
export function OneTimeLink({ url, children }: { url: string; children: React.ReactNode }) {
  return (
    <>
      <CodeBlock text={url} label="One-time link" />
      <p className="muted" style={{ marginTop: 6 }}>
        {children}
      </p>
    </>
  );
}
