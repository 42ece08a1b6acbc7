/** Files of figures: numbers, hashes, LaTeX; and what pages compute for them. */

import { createHash } from "node:crypto";
import { MantineProvider } from "@mantine/core";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { band, findValue, trace } from "@/charts/LineFigure";
import { chooseTicks, findRange } from "@/charts/scale";
import { buildCsv } from "@/lib/csv";
import { buildLatex } from "@/lib/latex";
import { diffLines, keepHunks } from "@/lib/lineDiff";
import { sha256 } from "@/lib/sha256";
import { writeSvg } from "@/lib/svgExport";
import { Figure } from "@/ui/Figure";

describe("sha256", () => {
  it("equals that of node for texts of every length around a block", () => {
    for (let length = 0; length < 200; length += 1) {
      const text = "é−x9".repeat(50).slice(0, length);
      expect(sha256(text)).toBe(createHash("sha256").update(text, "utf8").digest("hex"));
    }
  });
});

describe("LaTeX", () => {
  it("escapes what it would interpret, and rounds numbers", () => {
    const text = buildLatex(
      {
        header: ["a_b", "x"],
        rows: [
          ["50 % & $1 {2} \\ ^~#", -0.123456],
          ["<", null],
        ],
      },
      ["POST /x\n{}"],
    );
    expect(text).toContain("% POST /x {}\n");
    expect(text).toContain("\\begin{tabular}{lr}");
    expect(text).toContain("a\\_b & x \\\\");
    expect(text).toContain(
      "50 \\% \\& \\$1 \\{2\\} \\textbackslash{} \\textasciicircum{}\\textasciitilde{}\\# & $-$0.1235 \\\\",
    );
    expect(text).toContain("\\textless{} & -- \\\\");
  });
});

describe("Scales", () => {
  it("have round ticks within the range", () => {
    expect(chooseTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(chooseTicks(-1600, -100, 4)).toEqual([-1500, -1000, -500]);
    expect(chooseTicks(3, 3)).toEqual([3]);
    expect(findRange([1, null, 3, Number.NaN], 0)).toEqual([1, 3]);
    expect(findRange([])).toEqual([0, 1]);
  });
});

describe("Lines over the positions of several members", () => {
  const x = [10, 20, 30, 40, 50];
  const same = (value: number) => value;
  const member = [null, 2, null, 4, null];

  it("go on past the positions of other lines", () => {
    expect(trace(x, member, same, same)).toBe("M20.0 2.0L40.0 4.0");
    expect(trace(x, [null, null, null, null, null], same, same)).toBe("");
  });

  it("are a dot where there is one value", () => {
    expect(trace(x, [null, null, 3, null, null], same, same)).toBe("M30.0 3.0L30.0 3.0");
  });

  it("have a band over positions of other lines, and none where there is no interval", () => {
    const line = { name: "a", color: "#000", y: [1, null, 2, 3, 4] };
    const low = [0, null, 1, null, 3];
    expect(band(x, { ...line, low, high: low.map((one) => one && one + 2) }, same, same)).toBe(
      "M10.0 0.0L30.0 3.0L30.0 1.0L10.0 0.0Z",
    );
  });

  it("have the nearest of their values under the cursor, within their ends", () => {
    expect([0, 1, 2, 3, 4].map((at) => findValue(x, member, at))).toEqual([null, 1, 1, 3, null]);
  });
});

describe("Lines of two texts", () => {
  it("are those of either or of both", () => {
    const lines = diffLines("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n");
    expect(lines.map((line) => [line.text, line.side])).toEqual([
      ["a", null],
      ["b", "left"],
      ["x", "right"],
      ["c", null],
      ["d", null],
      ["e", "right"],
    ]);
    expect(diffLines("", "")).toEqual([]);
    const far = [..."abcdefgh"].join("\n");
    expect(keepHunks(diffLines(far, `${far}\nz`), 1).map((line) => line?.text ?? null)).toEqual([
      null,
      "h",
      "z",
    ]);
  });
});

describe("Figure", () => {
  const saved: { name: string; blob: Blob }[] = [];
  const data = { header: ["group", "value"], rows: [["agent=dqn", 0.1 + 0.2]] } as const;

  let last: Blob | null = null;

  beforeEach(() => {
    saved.length = 0;
    vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
      last = blob as Blob;
      return "blob:x";
    });
    vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (
      this: HTMLAnchorElement,
    ) {
      if (last !== null) saved.push({ name: this.download, blob: last });
    });
  });

  const show = () =>
    render(
      <MantineProvider env="test">
        <Figure
          title="Scores"
          name="scores"
          data={data}
          query={{ path: "POST /api/v1/x", body: { filter: "agent:dqn" } }}
          caption={["What it says."]}
        >
          <svg role="img" aria-label="drawing">
            <text>one</text>
          </svg>
        </Figure>
      </MantineProvider>,
    );

  it("shows its query and the hash of the file with its numbers", async () => {
    show();
    const figure = screen.getByRole("figure", { name: "Scores" });
    const text = 'POST /api/v1/x {"filter":"agent:dqn"}';
    expect(within(figure).getByText(text)).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "Save Scores" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "CSV, all digits" }));
    expect(saved[0]?.name).toBe("scores.csv");
    const csv = await (saved[0] as { blob: Blob }).blob.text();
    expect(csv).toBe(buildCsv(data.header, data.rows));
    expect(csv).toContain("agent=dqn,0.30000000000000004");
    const hash = createHash("sha256").update(csv).digest("hex");
    expect(within(figure).getByTitle(hash)).toBeInTheDocument();
  });

  it("is saved as a drawing that says where its numbers are from", async () => {
    show();
    await userEvent.click(screen.getByRole("button", { name: "Save Scores" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "SVG drawing" }));
    const svg = await (saved[0] as { blob: Blob }).blob.text();
    expect(saved[0]?.name).toBe("scores.svg");
    expect(svg).toContain('xmlns="http://www.w3.org/2000/svg"');
    expect(svg).toContain("<title>Scores</title>");
    expect(svg).toContain("SHA-256 of the data as CSV:");
  });

  it("leaves no style of the page behind", () => {
    show();
    const drawing = screen.getByRole("img", { name: "drawing" }) as unknown as SVGSVGElement;
    drawing.setAttribute("class", "x");
    const svg = writeSvg(drawing, "t", "d");
    expect(svg).not.toContain('class="x"');
    expect(drawing.getAttribute("class")).toBe("x");
  });
});
