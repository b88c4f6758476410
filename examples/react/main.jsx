/** Search in React: the index is made once, outside of components; a component asks it and gives up what it no longer wants. */
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { openIndex } from "./cities.js";

const opened = openIndex();

function Nearest() {
  const [place, setPlace] = useState("52.5, 13.4");
  const [cities, setCities] = useState([]);
  const [fault, setFault] = useState("");

  useEffect(() => {
    const abort = new AbortController();
    const [latitude, longitude] = place.split(",").map(Number);
    opened
      .then((index) =>
        index.search(toUnitSphere(latitude, longitude), { k: 3, similarity: "l2", columns: ["country"], signal: abort.signal }),
      )
      .then(({ results }) => {
        setCities(results);
        setFault("");
      })
      .catch((error) => {
        if (error.name !== "AbortError") setFault(error.message);
      });
    return () => abort.abort();
  }, [place]);

  return (
    <main>
      <label>
        Latitude, longitude: <input value={place} onChange={(event) => setPlace(event.target.value)} />
      </label>
      {fault !== "" && <p role="alert">{fault}</p>}
      <ol>
        {cities.map(({ id, columns }) => (
          <li key={id}>
            {id}, {columns.country}
          </li>
        ))}
      </ol>
    </main>
  );
}

/** Points of a sphere, where the nearest in space is the nearest on the ground. */
function toUnitSphere(latitude, longitude) {
  const [phi, lambda] = [(latitude * Math.PI) / 180, (longitude * Math.PI) / 180];
  return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
}

createRoot(document.querySelector("#root")).render(<Nearest />);
