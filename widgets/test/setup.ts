import { beforeEach, vi } from "vitest";

// A clock that stands still: a view then draws in the next frame, however busy the machine is.
beforeEach(() => {
  vi.spyOn(performance, "now").mockReturnValue(0);
});
