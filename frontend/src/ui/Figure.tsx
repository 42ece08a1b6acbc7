import { Menu } from "@mantine/core";
import { type ReactNode, useMemo, useRef } from "react";
import { buildCsv, saveBlob, saveText, type Table } from "@/lib/csv";
import { buildLatex } from "@/lib/latex";
import { sha256 } from "@/lib/sha256";
import { drawPng, writeSvg } from "@/lib/svgExport";
import { CopyButton } from "./Copy";
import classes from "./Figure.module.css";
import { IconDownload } from "./icons";
import { Panel } from "./Page";

interface FigureProps {
  title: string;
  /** Beginning of the names of its files. */
  name: string;
  /** The numbers that the figure shows, as the server answered them. */
  data: Table;
  /** The LaTeX table, where one in fewer columns reads better than `data`. */
  printed?: Table;
  /** The request that answers the numbers. */
  query: { path: string; body: unknown };
  /** Sentences below the figure: how its numbers were computed, and what they do not say. */
  caption?: readonly string[];
  aside?: ReactNode;
  /** Whether it is a table, which has no drawing to save. */
  table?: boolean;
  /** A drawing (one `svg`) or a table. */
  children: ReactNode;
}

/**
 * A figure or table with its caption, its query and the SHA-256 of its data, that can be saved as
 * SVG, PNG, CSV and LaTeX.
 *
 * The hash is that of the CSV file, so `sha256sum` of the file says whether its numbers are those
 * of the figure.
 */
export function Figure(props: FigureProps) {
  const { title, data, query, caption = [], table = false } = props;
  const frame = useRef<HTMLElement>(null);
  const csv = useMemo(() => buildCsv(data.header, data.rows), [data]);
  const hash = useMemo(() => sha256(csv), [csv]);
  const text = `${query.path} ${JSON.stringify(query.body)}`;
  const origin = [`${title}. ${text}`, `SHA-256 of the data as CSV: ${hash}`];
  const draw = () => {
    const drawing = frame.current?.querySelector<SVGSVGElement>("svg[role=img]");
    return drawing ? writeSvg(drawing, title, origin.join("\n")) : null;
  };
  const save = {
    svg: () => {
      const drawing = draw();
      if (drawing !== null) saveText(`${props.name}.svg`, drawing, "image/svg+xml");
    },
    png: async () => {
      const drawing = draw();
      if (drawing !== null) saveBlob(`${props.name}.png`, await drawPng(drawing));
    },
    csv: () => saveText(`${props.name}.csv`, csv),
    tex: () =>
      saveText(
        `${props.name}.tex`,
        buildLatex(props.printed ?? data, [...origin, ...caption]),
        "application/x-tex",
      ),
  };
  return (
    <Panel
      flush
      title={title}
      aside={
        <>
          {props.aside}
          <Menu>
            <Menu.Target>
              <button type="button" className={classes.save} aria-label={`Save ${title}`}>
                <IconDownload size={14} /> Save
              </button>
            </Menu.Target>
            <Menu.Dropdown>
              {!table && <Menu.Item onClick={save.svg}>SVG drawing</Menu.Item>}
              {!table && <Menu.Item onClick={() => void save.png()}>PNG image</Menu.Item>}
              <Menu.Item onClick={save.csv}>CSV, all digits</Menu.Item>
              <Menu.Item onClick={save.tex}>LaTeX table</Menu.Item>
            </Menu.Dropdown>
          </Menu>
        </>
      }
    >
      <figure className={classes.figure} ref={frame} aria-label={title}>
        {table ? (
          // The keyboard scrolls a wide table.
          <section className={classes.table} aria-label={`Table of ${title}`} tabIndex={0}>
            {props.children}
          </section>
        ) : (
          <div className={classes.drawing}>{props.children}</div>
        )}
        <figcaption className={classes.caption}>
          {caption.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
          <p className={classes.origin}>
            <code title={text}>{text}</code>
            <CopyButton text={text} label="Copy the query" />
            <span>
              SHA-256 <code title={hash}>{hash.slice(0, 16)}…</code>
            </span>
            <CopyButton text={hash} label="Copy the SHA-256 of the data" />
          </p>
        </figcaption>
      </figure>
    </Panel>
  );
}
