const BODY =
  "M11.5 3h9v2.2h-1.7c0 2.4.7 3.9 2.9 5.5 2.6 1.9 3.7 4.2 3.7 6.9 0 4.4-3.2 7.7-6.9 9.1v1.5h2V30" +
  "h-9v-1.8h2v-1.5c-3.7-1.4-6.9-4.7-6.9-9.1 0-2.7 1.1-5 3.7-6.9 2.2-1.6 2.9-3.1 2.9-5.5h-1.7z";

/** Palestra's logo, an amphora. */
export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path fill="var(--accent-fill)" d={BODY} />
      <path
        fill="none"
        stroke="var(--accent-fill)"
        strokeWidth="1.700"
        d="M13 7.200C9.300 6.200 7.200 8.400 7.600 12.400M19 7.200c3.700-1 5.800 1.200 5.400 5.200"
      />
      <path
        stroke="var(--surface)"
        strokeWidth="1.500"
        fill="none"
        d="M7.200 15.600h17.600M7 19.400h18"
      />
      <path
        stroke="var(--surface)"
        strokeWidth="1.100"
        fill="none"
        d="M8.500 17.500h2v-.9M12.500 17.500h2v-.9M16.500 17.500h2v-.9M20.500 17.500h2v-.9"
      />
    </svg>
  );
}
