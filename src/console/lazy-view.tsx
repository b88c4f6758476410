/** A view whose code is fetched when it is first shown. */
import type { FunctionComponent, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "./api/client.ts";
import { Fault, Waiting } from "./parts/notice.tsx";

export function lazyView<Props extends object>(load: () => Promise<FunctionComponent<Props>>): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  return function LazyView(props: Props): JSX.Element {
    const [, setState] = useState(0);
    const [fault, setFault] = useState("");
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (component) => {
          loaded = component;
          setState(1);
        },
        (error: unknown) => setFault(messageOf(error)),
      );
    }, []);
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
