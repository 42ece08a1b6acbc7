/** The amphora: Palestra's mark. */
export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path
        fill="var(--accent-fill)"
        d="M11.500 3h9v2.200h-1.700c0 2.400.7 3.900 2.900 5.500 2.600 1.900 3.700 4.200 3.700 6.900 0 4.400-3.200 7.700-6.900 9.100v1.500h2V30h-9v-1.800h2v-1.500c-3.700-1.400-6.900-4.700-6.900-9.100 0-2.700 1.100-5 3.700-6.900 2.200-1.600 2.900-3.100 2.900-5.500h-1.700z"
      />
      <path
        fill="none"
        stroke="var(--accent-fill)"
        strokeWidth="1.700"
        d="M13 7.200C9.300 6.200 7.200 8.400 7.600 12.400M19 7.200c3.700-1 5.800 1.200 5.400 5.200"
      />
      <path stroke="var(--surface)" strokeWidth="1.500" fill="none" d="M7.200 15.600h17.600M7 19.400h18" />
      <path
        stroke="var(--surface)"
        strokeWidth="1.100"
        fill="none"
        d="M8.500 17.500h2v-.9M12.500 17.500h2v-.9M16.500 17.500h2v-.9M20.500 17.500h2v-.9"
      />
    </svg>
  );
}
