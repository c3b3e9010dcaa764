// The answer of EXPLAIN as a tree: what is done with the rows above, how they are found below.

import type { ReactNode } from "react";
import { whole } from "./ui";

interface Node {
  title: string;
  about: string;
  estimate: number | undefined;
  lookedAt: number | undefined;
  found: number | undefined;
  isScan: boolean;
  children: Node[];
}

const STEP = /^((?:[\w ]+: )*?)(\S.*? #\d+)(?:: (.*))?$/;
const NUMBERS = /(?:, about (\d+) rows)?(?:; looked at (\d+), found (\d+)(.*))?$/;

/** Steps are indented; lines about the result are not. */
export function planOf(lines: string[]): Node | undefined {
  let root: Node | undefined;
  const result: Node[] = [];
  const steps: Node = {
    title: "rows",
    about: "",
    estimate: undefined,
    lookedAt: undefined,
    found: undefined,
    isScan: false,
    children: [],
  };
  const open: { depth: number; node: Node }[] = [{ depth: 0, node: steps }];
  for (const line of lines) {
    const depth = /^ */.exec(line)![0].length;
    if (depth === 0) {
      result.push(nodeOf(line));
      continue;
    }
    const node = nodeOf(line.trim());
    while (open.length > 1 && open.at(-1)!.depth >= depth) open.pop();
    open.at(-1)!.node.children.push(node);
    open.push({ depth, node });
  }
  let inner: Node[] = joined(steps.children);
  for (const node of result) {
    node.children = inner;
    inner = [node];
    root = node;
  }
  return root ?? (inner.length === 1 ? inner[0] : { ...steps, children: inner });
}

/** A relation is looked up for each row of the one before it, so it stands above that. */
function joined(steps: Node[]): Node[] {
  let below: Node[] = [];
  for (const step of steps) {
    step.children = [...below, ...joined(step.children)];
    below = [step];
  }
  return below;
}

/** Longer lines have the text of a rule in them, and are shown as they are. */
const LINE_MAX = 1_000;

function nodeOf(line: string): Node {
  if (line.length > LINE_MAX) {
    const nothing = { about: "", estimate: undefined, lookedAt: undefined, found: undefined };
    return { title: `${line.slice(0, LINE_MAX)}…`, ...nothing, isScan: false, children: [] };
  }
  const numbers = NUMBERS.exec(line)!;
  const text = line.slice(0, numbers.index);
  const step = STEP.exec(text);
  const number = (at: number) => (numbers[at] === undefined ? undefined : Number(numbers[at]));
  return {
    title: step ? `${step[1]}${step[2]!.replace(/ #\d+$/, "")}` : text,
    about: [step?.[3], numbers[4]?.trim()].filter(Boolean).join(" "),
    estimate: number(1),
    lookedAt: number(2),
    found: number(3),
    isScan: step?.[3] === "all rows",
    children: [],
  };
}

const largest = (node: Node): number =>
  Math.max(node.lookedAt ?? 0, node.estimate ?? 0, ...node.children.map(largest));

export function Plan({ lines }: { lines: string[] }): ReactNode {
  const root = planOf(lines);
  if (!root) return null;
  return (
    <ul className="plan" aria-label="Plan">
      <PlanNode node={root} most={Math.max(1, largest(root))} />
    </ul>
  );
}

function PlanNode({ node, most }: { node: Node; most: number }): ReactNode {
  const part = node.lookedAt === undefined ? 0 : node.lookedAt / most;
  return (
    <li>
      <div className={`plan-node${node.isScan && (node.lookedAt ?? 0) > 1000 ? " heavy" : ""}`}>
        <div className="plan-title">
          <strong>{node.title}</strong>
          {node.about && <span className="mono">{node.about}</span>}
        </div>
        {node.lookedAt !== undefined && (
          <>
            <dl>
              <div>
                <dt>expected</dt>
                <dd>{node.estimate === undefined ? "–" : whole(node.estimate)}</dd>
              </div>
              <div>
                <dt>looked at</dt>
                <dd>{whole(node.lookedAt)}</dd>
              </div>
              <div>
                <dt>found</dt>
                <dd>{whole(node.found ?? 0)}</dd>
              </div>
            </dl>
            <svg className="plan-bar" width="100%" height="4" aria-hidden="true" focusable="false">
              <rect width={`${Math.max(0.5, part * 100)}%`} height="4" rx="2" />
            </svg>
          </>
        )}
      </div>
      {node.children.length > 0 && (
        <ul>
          {node.children.map((child, at) => (
            <PlanNode key={at} node={child} most={most} />
          ))}
        </ul>
      )}
    </li>
  );
}
