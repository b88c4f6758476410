/** Where in a filter a fault is, and how values are shown in messages. */
import { LodestoneError } from "../errors.ts";

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
  return PLAIN_STEP.test(step) && step.length <= 100 ? `${placeText(parent)}.${step}` : `${placeText(parent)}[${show(step)}]`;
}

/** A value as JSON, cut short. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return cut(JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value));
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  return cut(String(value));
}

function cut(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
