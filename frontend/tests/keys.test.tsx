/** Line 15.24: a key that is meant for a search field opens no row. */
import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useRef, useState } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listenToKeys } from "@/lib/shortcuts";
import { DataTable } from "@/ui/DataTable";
import { SearchInput } from "@/ui/SearchInput";

const open = vi.fn();
let stop: () => void;

function List() {
  const [text, setText] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const rows = ["ant", "cart", "pole"].filter((name) => name.includes(text));
  return (
    <MantineProvider env="test">
      <SearchInput input={input} label="Search names" value={text} onChange={setText} />
      <DataTable
        label="Names"
        rows={rows}
        columns={[{ id: "name", header: "Name", cell: (name) => name }]}
        rowId={(name) => name}
        onOpen={open}
      />
    </MantineProvider>
  );
}

beforeEach(() => {
  open.mockClear();
  stop = listenToKeys();
});
afterEach(() => stop());

const field = () => screen.getByRole("searchbox");

describe("a list with a search field", () => {
  it("opens the row that was selected", async () => {
    render(<List />);
    await userEvent.keyboard("jj{Enter}");
    expect(open).toHaveBeenCalledExactlyOnceWith("cart");
  });

  it("ends the selection when the field gets the focus: Enter opens nothing", async () => {
    render(<List />);
    await userEvent.keyboard("j/cart{Escape}");
    expect(field()).toHaveFocus();
    expect(field()).toHaveValue("");
    await userEvent.keyboard("{Escape}{Enter}");
    expect(field()).not.toHaveFocus();
    expect(open).not.toHaveBeenCalled();
  });

  it("keeps the selection at its row when the list changes", async () => {
    const { rerender } = render(<Fixed rows={["ant", "cart"]} />);
    await userEvent.keyboard("j");
    rerender(<Fixed rows={["new", "ant", "cart"]} />);
    await userEvent.keyboard("{Enter}");
    expect(open).toHaveBeenCalledExactlyOnceWith("ant");
    rerender(<Fixed rows={["new", "cart"]} />);
    await userEvent.keyboard("{Enter}");
    expect(open).toHaveBeenCalledOnce();
  });

  it("ends the selection at Escape", async () => {
    render(<List />);
    await userEvent.keyboard("j{Escape}{Enter}");
    expect(open).not.toHaveBeenCalled();
  });
});

const COLUMNS = [{ id: "name", header: "Name", cell: (name: string) => name }];

function Fixed({ rows }: { rows: string[] }) {
  return (
    <DataTable label="Names" rows={rows} columns={COLUMNS} rowId={(name) => name} onOpen={open} />
  );
}
