/** Drawings of a page as files: SVG that needs no style sheet, and PNG. */

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "paint-order",
  "stroke-dasharray",
  "stroke-opacity",
  "stroke-linejoin",
  "opacity",
  "font-size",
  "font-weight",
  "font-family",
  "text-anchor",
  "dominant-baseline",
] as const;
const NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * Returns a drawing as an SVG document with the page's styles as attributes, on the page's ground.
 *
 * @param description where its numbers are from, which becomes the document's `desc`
 */
export function writeSvg(drawing: SVGSVGElement, title: string, description: string): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const originals = [drawing, ...drawing.querySelectorAll<SVGElement>("*")];
  const copies = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  for (const [index, original] of originals.entries()) {
    const computed = getComputedStyle(original);
    const target = copies[index] as SVGElement;
    for (const name of STYLES) {
      const value = computed.getPropertyValue(name);
      if (value) target.setAttribute(name, value);
    }
    target.removeAttribute("class");
    target.removeAttribute("style");
  }
  const { width, height } = readSize(drawing);
  copy.setAttribute("xmlns", NAMESPACE);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.prepend(
    element("title", title),
    element("desc", description),
    makeGround(drawing, width, height),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

/** Draws an SVG document as PNG with `scale` pixels per unit. */
export async function drawPng(svg: string, scale = 3): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * scale;
  canvas.height = image.height * scale;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The PNG was not drawn."))));
  });
}

function readSize(drawing: SVGSVGElement): { width: number; height: number } {
  const { width, height } = drawing.getBoundingClientRect();
  return { width: Math.round(width) || 640, height: Math.round(height) || 320 };
}

function element(name: string, text: string): SVGElement {
  const made = document.createElementNS(NAMESPACE, name);
  made.textContent = text;
  return made;
}

function makeGround(drawing: SVGSVGElement, width: number, height: number): SVGElement {
  const ground = document.createElementNS(NAMESPACE, "rect");
  ground.setAttribute("width", String(width));
  ground.setAttribute("height", String(height));
  ground.setAttribute(
    "fill",
    getComputedStyle(drawing).getPropertyValue("--surface").trim() || "white",
  );
  return ground;
}
