/** A view whose code is fetched when it is first shown. */
import type { FunctionComponent, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf, send } from "./api/client.ts";
import { useRoundsOf } from "./parts/form.tsx";
import { Fault, Waiting } from "./parts/notice.tsx";

/** @param name  of the view among what the module exports. */
export function lazyView<Name extends string, Props extends object>(
  load: () => Promise<Readonly<Record<Name, FunctionComponent<Props>>>>,
  name: Name,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  return function LazyView(props: Props): JSX.Element {
    const [, setState] = useState(0);
    const [fault, setFault] = useState("");
    const round = useRoundsOf(fault !== "");
    useEffect(() => {
      if (loaded !== undefined) return;
      // Browsers remember that a module could not be fetched. Their message has its address; under another one it is fetched again.
      const failed = /https?:\S+\.js/.exec(fault)?.[0];
      const again = failed === undefined ? load() : (import(`${failed}?${round}`) as ReturnType<typeof load>);
      again.then(
        (module) => {
          loaded = module[name];
          setFault("");
          setState(1);
        },
        (error: unknown) => {
          setFault(messageOf(error));
          // Is the server away? Then it is waited for.
          void send("GET", "/livez").catch(() => {});
        },
      );
    }, [round]);
    if (fault !== "") {
      return (
        <Fault>
          {fault}{" "}
          <button type="button" onClick={() => location.reload()}>
            Load the page again
          </button>
        </Fault>
      );
    }
    if (loaded === undefined) return <Waiting what="Loading …" />;
    const Component = loaded;
    return <Component {...props} />;
  };
}
