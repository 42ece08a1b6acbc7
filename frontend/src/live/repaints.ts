/** Repaints of charts: at most ten a second, each in an animation frame. */

const INTERVAL_MS = 100;

export class Repaints {
  readonly #changed = new Set<string>();
  readonly #painters = new Map<string, Set<() => void>>();
  #frame = 0;
  #paintedAt = 0;

  /** Calls `paint` in an animation frame after each change of the series. */
  watch(series: string, paint: () => void): () => void {
    const painters = this.#painters.get(series) ?? new Set();
    this.#painters.set(series, painters.add(paint));
    return () => painters.delete(paint);
  }

  /** Marks a series as changed. */
  request(series: string): void {
    this.#changed.add(series);
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#paint(now));
  }

  #paint(now: number): void {
    if (now - this.#paintedAt < INTERVAL_MS) {
      this.#frame = requestAnimationFrame((later) => this.#paint(later));
      return;
    }
    this.#paintedAt = now;
    this.#frame = 0;
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const series of changed) for (const paint of this.#painters.get(series) ?? []) paint();
  }
}
