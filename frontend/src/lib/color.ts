/**
 * Colours of runs. A colour belongs to a group (an experiment) and is the same on every page; its
 * seeds share the hue.
 */

export type Scheme = "light" | "dark";

interface Hue {
  /**
   * OKLCH hue in degrees and chroma; the order keeps neighbours apart for all common colour vision
   * deficiencies.
   */
  hue: number;
  chroma: number;
  light: number;
  dark: number;
}

const CYCLE: readonly Hue[] = [
  { hue: 252, chroma: 0.125, light: 0.52, dark: 0.72 },
  { hue: 44, chroma: 0.145, light: 0.6, dark: 0.72 },
  { hue: 168, chroma: 0.1, light: 0.55, dark: 0.77 },
  { hue: 345, chroma: 0.13, light: 0.56, dark: 0.74 },
  { hue: 82, chroma: 0.125, light: 0.66, dark: 0.82 },
  { hue: 225, chroma: 0.095, light: 0.64, dark: 0.82 },
  { hue: 302, chroma: 0.13, light: 0.47, dark: 0.68 },
  { hue: 118, chroma: 0.105, light: 0.53, dark: 0.75 },
];

const LIGHTNESS_SPAN = 0.24;
/**
 * The greatest lightness with a contrast of 3:1 to the light surface at every hue (WCAG 1.4.11).
 */
const LIGHTEST = 0.63;

function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1)
    state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
  return (state ^ (state >>> 13)) >>> 0;
}

/** Lightness values that distinguish groups whose hash gives the same hue. */
const SHADES = [0, -0.08, 0.07];

function hueOf(group: string): Hue {
  const number = hash(group);
  const base = CYCLE[number % CYCLE.length] as Hue;
  const shade = SHADES[Math.floor(number / CYCLE.length) % SHADES.length] as number;
  return {
    ...base,
    light: Math.min(base.light + shade, LIGHTEST),
    dark: Math.max(0.66, base.dark + shade),
  };
}

function channel(linear: number): string {
  const bounded = Math.min(1, Math.max(0, linear));
  const encoded = bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055;
  return Math.round(encoded * 255)
    .toString(16)
    .padStart(2, "0");
}

/** Converts OKLCH to `#rrggbb` (Ottosson 2020), clipping to sRGB. */
export function oklch(lightness: number, chroma: number, degrees: number): string {
  const a = chroma * Math.cos((degrees * Math.PI) / 180);
  const b = chroma * Math.sin((degrees * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const red = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s;
  const green = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s;
  const blue = -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s;
  return `#${channel(red)}${channel(green)}${channel(blue)}`;
}

/** The colour of a group, used for its mean curve and for its dot in lists. */
export function chooseGroupColor(group: string, scheme: Scheme): string {
  const { hue, chroma, light, dark } = hueOf(group);
  return oklch(scheme === "light" ? light : dark, chroma, hue);
}

/** The colour of the part of a stack at `index`, from 0: neighbours are told apart. */
export function chooseCycleColor(index: number, scheme: Scheme): string {
  const { hue, chroma, light, dark } = CYCLE[index % CYCLE.length] as Hue;
  return oklch(scheme === "light" ? Math.min(light, LIGHTEST) : dark, chroma, hue);
}

/** The group's hue with the highest contrast to the surface, for a mean drawn over many members. */
export function emphasise(group: string, scheme: Scheme): string {
  const { hue, chroma } = hueOf(group);
  return oklch(scheme === "light" ? 0.38 : 0.9, chroma * 0.85, hue);
}

/**
 * The colour of one member of a group: the group's hue with a lightness per member. `index` counts
 * from 0 in a stable order.
 */
export function chooseMemberColor(
  group: string,
  index: number,
  members: number,
  scheme: Scheme,
): string {
  const { hue, chroma, light, dark } = hueOf(group);
  const place = members <= 1 ? 0 : index / (members - 1) - 0.5;
  const middle =
    scheme === "light"
      ? Math.min(light + 0.03, LIGHTEST - LIGHTNESS_SPAN / 2)
      : Math.max(dark - 0.03, 0.71);
  const lightness = middle + place * LIGHTNESS_SPAN;
  return oklch(lightness, chroma * (1 - 0.25 * Math.abs(place)), hue + place * 14);
}

/** `#rrggbb` with an alpha between 0 and 1. */
export function alpha(color: string, opacity: number): string {
  return `${color}${Math.round(opacity * 255)
    .toString(16)
    .padStart(2, "0")}`;
}
