import { afterEach, beforeEach, vi } from "vitest";
import { disposeAll } from "./helpers";

// A clock that stands still: a view then draws in the next frame, however busy the machine is.
beforeEach(() => {
  vi.spyOn(performance, "now").mockReturnValue(0);
});

afterEach(disposeAll);
