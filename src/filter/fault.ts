/** Says where in a filter a fault is. */
import { LodestoneError } from "../errors.ts";
import { quoted } from "../value-in-words.ts";

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

const PLAIN_STEP = /^[\w$.~>-]+$/;

function placeText(place: Place): string {
  const { parent, step } = place;
  if (parent === null) return String(step);
  if (typeof step === "number") return `${placeText(parent)}[${step}]`;
  return PLAIN_STEP.test(step) && step.length <= 100 ? `${placeText(parent)}.${step}` : `${placeText(parent)}[${quoted(step)}]`;
}
