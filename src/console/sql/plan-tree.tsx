/** The plan of a statement, as EXPLAIN (FORMAT JSON) answers it, drawn as a tree: each step above those that it reads from. */
import type { JSX } from "preact";
import { shortNumber } from "../parts/numbers.ts";
import type { SqlAnswer } from "./answer-values.ts";

interface PlanStep {
  readonly "Node Type": string;
  readonly "Plan Rows"?: number;
  readonly "Total Cost"?: number;
  readonly Plans?: readonly PlanStep[];
  readonly [property: string]: unknown;
}

/** What the heading of a step says already, or what says nothing to the reader. */
const NOT_DETAILS = new Set([
  "Node Type",
  "Operation",
  "Join Type",
  "Relation Name",
  "Alias",
  "Index Name",
  "CTE Name",
  "Function Name",
  "Subplan Name",
  "Parent Relationship",
  "Partial Mode",
  "Scan Direction",
]);

/** undefined: the answer is no plan. */
export function planOf({ columns, rows }: SqlAnswer): PlanStep | undefined {
  if (columns.length !== 1 || columns[0]?.name !== "QUERY PLAN" || columns[0].type !== "json") return undefined;
  const explained: unknown = rows[0]?.[0];
  const plan = Array.isArray(explained) ? (explained[0] as { readonly Plan?: PlanStep } | null)?.Plan : undefined;
  return typeof plan?.["Node Type"] === "string" ? plan : undefined;
}

export function PlanTree({ plan }: { plan: PlanStep }): JSX.Element {
  return (
    <div class="table-scroll plan" role="region" tabIndex={0} aria-label="Plan">
      <p class="plan-head" aria-hidden="true">
        <span>Step</span>
        <span class="number">Rows</span>
        <span class="number">Cost</span>
      </p>
      <ul>
        <Step step={plan} wholeCost={plan["Total Cost"] ?? 0} />
      </ul>
      <p class="hint">Rows and costs are estimates of PostgreSQL. A cost includes the steps below; the bar is what the step itself adds.</p>
    </div>
  );
}

function Step({ step, wholeCost }: { step: PlanStep; wholeCost: number }): JSX.Element {
  const { Plans: below = [] } = step;
  const cost = step["Total Cost"] ?? 0;
  // A step that stops early (LIMIT) costs less than what it would read.
  const own = Math.max(0, cost - below.reduce((sum, { "Total Cost": each = 0 }) => sum + each, 0));
  const name = step["Subplan Name"];
  return (
    <li>
      <div class="plan-step">
        <div>
          {typeof name === "string" && <span class="tag">{name}</span>}
          <Heading step={step} />
          {detailsOf(step).map(([label, text]) => (
            <p key={label} class="small">
              <span class="muted">{label}</span> <code>{text}</code>
            </p>
          ))}
        </div>
        <span class="number">
          {(step["Plan Rows"] ?? 0).toLocaleString("en")}
          <span class="hidden"> rows, cost </span>
        </span>
        <span class="number">
          {shortNumber(cost)}
          <span class="plan-cost">
            <span style={{ width: `${wholeCost === 0 ? 0 : Math.min(100, (100 * own) / wholeCost)}%` }} />
          </span>
        </span>
      </div>
      {below.length > 0 && (
        <ul>
          {below.map((each, i) => (
            <Step key={i} step={each} wholeCost={wholeCost} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** "Index Scan of films by films_pkey", "Hash Join (Left)", "Delete on films". */
function Heading({ step }: { step: PlanStep }): JSX.Element {
  const text = (property: string): string | undefined => (typeof step[property] === "string" ? step[property] : undefined);
  const operation = text("Operation");
  const join = text("Join Type");
  const source = text("Relation Name") ?? text("CTE Name") ?? text("Function Name");
  const index = text("Index Name");
  const alias = text("Alias");
  return (
    <>
      <strong>{operation ?? step["Node Type"]}</strong>
      {join !== undefined && join !== "Inner" && ` (${join})`}
      {source !== undefined && (
        <>
          {operation === undefined ? " of " : " on "}
          <bdi>{source}</bdi>
        </>
      )}
      {alias !== undefined && alias !== source && (
        <>
          {source === undefined ? " " : " as "}
          <bdi>{alias}</bdi>
        </>
      )}
      {index !== undefined && (
        <>
          {" by "}
          <bdi>{index}</bdi>
        </>
      )}
    </>
  );
}

/** Filter, Index Cond, Sort Key … in the order of PostgreSQL. */
const detailsOf = (step: PlanStep): readonly (readonly [string, string])[] =>
  Object.entries(step).flatMap(([property, value]) => {
    if (NOT_DETAILS.has(property)) return [];
    if (typeof value === "string") return [[property, value] as const];
    const texts = Array.isArray(value) && value.every((each) => typeof each === "string") ? value : [];
    return texts.length === 0 ? [] : [[property, texts.join(", ")] as const];
  });
