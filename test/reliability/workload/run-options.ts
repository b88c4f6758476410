/** What a run of clients beside events (weather, outages) is given, whatever the events are. */
export interface RunOptions<Event> {
  /** Rounds of events. */
  readonly rounds: number;
  /** After this time no new round begins. Default: no limit. */
  readonly minutes?: number;
  /** Default: all. */
  readonly events?: readonly Event[];
  /** What the clients do before each event. */
  readonly calmOperations: number;
  readonly clients: number;
  readonly seed: number;
  readonly onEvent?: (line: string) => void;
}
