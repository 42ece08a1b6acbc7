/**
 * Ring buffer of one series' exact points; it grows to its capacity, then overwrites the oldest.
 */

export interface PointColumns {
  fence: number;
  seq: number;
  env_step: readonly number[];
  update: readonly number[];
  episode: readonly number[];
  wall: readonly number[];
  value: readonly (number | string | null)[];
}

/** The new points of a run, as an event of type `points` brings them. */
export interface PointsOfBatch {
  fence: number;
  seq: number;
  series: readonly ({ name: string } & Omit<PointColumns, "fence" | "seq">)[];
}

const COLUMNS = ["env_step", "update", "episode", "wall", "value", "fence", "seq"] as const;
export type ColumnName = (typeof COLUMNS)[number];
export type Axis = "env_step" | "update" | "episode" | "wall";

const INITIAL = 256;
export const DEFAULT_CAPACITY = 32_768;

export class SeriesRing {
  #columns: Record<ColumnName, Float64Array>;
  #size = INITIAL;
  #start = 0;
  #length = 0;
  /** Number of points that were overwritten. */
  dropped = 0;
  readonly capacity: number;

  constructor(capacity = DEFAULT_CAPACITY) {
    this.capacity = capacity;
    this.#size = Math.min(INITIAL, capacity);
    this.#columns = allocate(this.#size);
  }

  get length(): number {
    return this.#length;
  }

  /** Appends points of one record, in their order. */
  push(points: PointColumns): void {
    for (let i = 0; i < points.env_step.length; i += 1) {
      const at = this.#slot();
      const columns = this.#columns;
      columns.env_step[at] = points.env_step[i] ?? Number.NaN;
      columns.update[at] = points.update[i] ?? Number.NaN;
      columns.episode[at] = points.episode[i] ?? Number.NaN;
      columns.wall[at] = points.wall[i] ?? Number.NaN;
      columns.value[at] = read(points.value[i]);
      columns.fence[at] = points.fence;
      columns.seq[at] = points.seq;
    }
  }

  /** The value of a column; `index` 0 is the oldest point. */
  at(column: ColumnName, index: number): number {
    return this.#columns[column][(this.#start + index) % this.#size] ?? Number.NaN;
  }

  /** A column in order, copied. */
  column(name: ColumnName): Float64Array {
    const result = new Float64Array(this.#length);
    for (let i = 0; i < this.#length; i += 1) result[i] = this.at(name, i);
    return result;
  }

  clear(): void {
    this.#start = 0;
    this.#length = 0;
    this.dropped = 0;
  }

  #slot(): number {
    if (this.#length === this.#size && this.#size < this.capacity) this.#grow();
    if (this.#length < this.#size) {
      this.#length += 1;
      return (this.#start + this.#length - 1) % this.#size;
    }
    const oldest = this.#start;
    this.#start = (this.#start + 1) % this.#size;
    this.dropped += 1;
    return oldest;
  }

  #grow(): void {
    const size = Math.min(this.capacity, this.#size * 2);
    const columns = allocate(size);
    for (const name of COLUMNS) columns[name].set(this.column(name));
    this.#columns = columns;
    this.#size = size;
    this.#start = 0;
  }
}

function allocate(size: number): Record<ColumnName, Float64Array> {
  return Object.fromEntries(COLUMNS.map((name) => [name, new Float64Array(size)])) as Record<
    ColumnName,
    Float64Array
  >;
}

function read(value: number | string | null | undefined): number {
  return value === null || value === undefined ? Number.NaN : Number(value);
}
