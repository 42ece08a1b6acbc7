/**
 * SHA-256 (FIPS 180-4) of texts. The browser's own is missing where a page has no TLS, as in many
 * local networks.
 */

const WORDS = 64;
const K = new Uint32Array(WORDS);
const INITIAL = new Uint32Array(8);

/** Fills the constants: bits of the fractions of the roots of the first primes. */
function fillConstants(): void {
  let found = 0;
  for (let number = 2; found < WORDS; number += 1) {
    if (!isPrime(number)) continue;
    if (found < INITIAL.length) INITIAL[found] = fractionBits(Math.sqrt(number));
    K[found] = fractionBits(Math.cbrt(number));
    found += 1;
  }
}

function isPrime(number: number): boolean {
  for (let factor = 2; factor * factor <= number; factor += 1)
    if (number % factor === 0) return false;
  return true;
}

function fractionBits(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

fillConstants();

/** Returns the SHA-256 of a text's UTF-8 as 64 hexadecimal digits. */
export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const blocks = Math.ceil((bytes.length + 9) / 64);
  const padded = new Uint8Array(blocks * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor((bytes.length * 8) / 2 ** 32));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  const state = INITIAL.slice();
  const schedule = new Uint32Array(WORDS);
  for (let block = 0; block < blocks; block += 1) compress(state, schedule, view, block * 64);
  return [...state].map((word) => word.toString(16).padStart(8, "0")).join("");
}

const rotate = (word: number, by: number) => (word >>> by) | (word << (32 - by));
const at = (array: Uint32Array, index: number) => array[index] as number;

function compress(state: Uint32Array, w: Uint32Array, view: DataView, start: number): void {
  for (let i = 0; i < 16; i += 1) w[i] = view.getUint32(start + 4 * i);
  for (let i = 16; i < WORDS; i += 1) {
    const [early, late] = [at(w, i - 15), at(w, i - 2)];
    const low = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const high = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    w[i] = at(w, i - 16) + low + at(w, i - 7) + high;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let i = 0; i < WORDS; i += 1) {
    const high = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const first = (h + high + ((e & f) ^ (~e & g)) + at(K, i) + at(w, i)) | 0;
    const low = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const second = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = at(state, i) + word;
}
