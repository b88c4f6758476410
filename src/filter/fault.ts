/** Faults of filters, and where in a filter they are. */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";

/** A place in the filter: `filter.$any[1].price.$gt`. Text is only made when there is a fault. */
export interface Place {
  readonly parent: Place | null;
  readonly step: string | number;
}

export function rootPlace(name: string): Place {
  return { parent: null, step: name };
}

export function at(parent: Place, step: string | number): Place {
  return { parent, step };
}

export function fault(place: Place, problem: string): LodestoneError {
  return new LodestoneError("INVALID", `${placeText(place)}: ${problem}`);
}

/** The refusal of a filter that cannot be answered exactly. @param column  as the filter names it. @param id  of a record. */
export function valueNotKept(column: string, id: string): LodestoneError {
  return new LodestoneError(
    "INVALID",
    `filter: column ${quoted(column)} of the record ${quoted(id)} holds a value that is too large to be kept for searches (32 MiB), so this filter ` +
      'cannot be answered exactly. Leave the column out of the filter, shorten the value, or use "query", which asks the database.',
  );
}

const PLAIN_STEP = /^[\w$.~>-]+$/;

function placeText(place: Place): string {
  const { parent, step } = place;
  if (parent === null) return String(step);
  if (typeof step === "number") return `${placeText(parent)}[${step}]`;
  return PLAIN_STEP.test(step) && step.length <= 100 ? `${placeText(parent)}.${step}` : `${placeText(parent)}[${quoted(step)}]`;
}
