import {
  Button,
  type CSSVariablesResolver,
  createTheme,
  type MantineColorsTuple,
  Notification,
} from "@mantine/core";

const clay: MantineColorsTuple = [
  "#fbf0ea",
  "#f5e2d7",
  "#ebc3ae",
  "#e1a284",
  "#d98661",
  "#cf6b41",
  "#bb5230",
  "#a8431f",
  "#8b3618",
  "#6e2a12",
];

const ink: MantineColorsTuple = [
  "#f7f3ec",
  "#e9e1d4",
  "#cfc4b4",
  "#b0a493",
  "#908474",
  "#6f6559",
  "#574e44",
  "#3f372f",
  "#2b251f",
  "#211c17",
];

/** Mantine's greys with a warm tone. Index 0 is the lightest. */
const gray: MantineColorsTuple = [
  "#faf7f1",
  "#f2ece2",
  "#ece4d8",
  "#e4dbce",
  "#c9bdab",
  "#a89c8b",
  "#8f8374",
  "#6f6559",
  "#574e44",
  "#211c17",
];

const dark: MantineColorsTuple = [
  "#efe7db",
  "#cfc4b5",
  "#9d9182",
  "#84796b",
  "#4f463b",
  "#322b25",
  "#26211c",
  "#1c1815",
  "#151210",
  "#0e0b0a",
];

/**
 * Filled buttons invert text and surface colour, which is readable in both schemes; shades of one
 * colour are not.
 */
function filled(danger: boolean): Record<string, string> {
  const tone = danger ? "var(--bad)" : "var(--ink)";
  return {
    "--button-bg": tone,
    "--button-hover": `color-mix(in srgb, ${tone} 86%, var(--surface))`,
    "--button-color": "var(--surface)",
  };
}

/** The theme of Mantine's components. */
export const theme = createTheme({
  fontFamily: "var(--font-text)",
  fontFamilyMonospace: "var(--font-mono)",
  primaryColor: "ink",
  primaryShade: { light: 9, dark: 1 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  colors: { clay, ink, gray, dark },
  defaultRadius: 6,
  cursorType: "pointer",
  respectReducedMotion: true,
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.25rem" },
  components: {
    Button: Button.extend({
      defaultProps: { size: "xs", fw: 550 },
      vars: (_theme, props) => ({
        root: (props.variant ?? "filled") === "filled" ? filled(props.color === "red") : {},
      }),
    }),
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray", size: 28 } },
    TextInput: { defaultProps: { size: "xs" } },
    Textarea: { defaultProps: { size: "xs" } },
    PasswordInput: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs", comboboxProps: { shadow: "md" } } },
    MultiSelect: { defaultProps: { size: "xs", comboboxProps: { shadow: "md" } } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    Switch: { defaultProps: { size: "xs", withThumbIndicator: false } },
    Checkbox: { defaultProps: { size: "xs" } },
    NumberInput: { defaultProps: { size: "xs" } },
    Radio: { defaultProps: { size: "xs" } },
    Autocomplete: { defaultProps: { size: "xs", comboboxProps: { shadow: "md" } } },
    Slider: { defaultProps: { size: "xs" } },
    Modal: {
      defaultProps: {
        centered: true,
        overlayProps: { backgroundOpacity: 0.35 },
        padding: "lg",
        closeButtonProps: { "aria-label": "Close the dialog" },
      },
    },
    Notification: Notification.extend({
      styles: { description: { color: "var(--ink-2)" } },
      vars: (_theme, props) => ({
        root: props.color === "red" ? { "--notification-color": "var(--bad)" } : {},
      }),
    }),
    Tooltip: { defaultProps: { openDelay: 350, withArrow: false, fz: 12 } },
    // The placeholder of the focus is an element that a menu may not have.
    Menu: {
      defaultProps: { shadow: "md", position: "bottom-end", withInitialFocusPlaceholder: false },
    },
  },
});

/** Sets Mantine's variables to the tokens, so that there is one palette. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "var(--surface)",
    "--mantine-color-text": "var(--ink)",
    "--mantine-color-dimmed": "var(--ink-2)",
    "--mantine-color-placeholder": "var(--ink-3)",
    "--mantine-color-default": "var(--surface)",
    "--mantine-color-default-hover": "var(--surface-2)",
    "--mantine-color-default-border": "var(--line-strong)",
    "--mantine-color-default-color": "var(--ink)",
    "--mantine-color-error": "var(--bad)",
    "--mantine-color-gray-light-hover": "var(--surface-2)",
    "--mantine-color-gray-light-color": "var(--ink-2)",
  },
  dark: {
    "--mantine-color-body": "var(--surface)",
    "--mantine-color-text": "var(--ink)",
    "--mantine-color-dimmed": "var(--ink-2)",
    "--mantine-color-placeholder": "var(--ink-3)",
    "--mantine-color-default": "var(--surface-2)",
    "--mantine-color-default-hover": "var(--surface-3)",
    "--mantine-color-default-border": "var(--line-strong)",
    "--mantine-color-default-color": "var(--ink)",
    "--mantine-color-error": "var(--bad)",
    "--mantine-color-gray-light-hover": "var(--surface-3)",
    "--mantine-color-gray-light-color": "var(--ink-2)",
  },
});
