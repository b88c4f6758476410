/** What a check has found. */
export interface Fault {
  readonly table?: string;
  readonly column?: string;
  /** What is wrong, in a sentence. */
  readonly message: string;
}
