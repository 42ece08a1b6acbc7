import { Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useControl, usePermission } from "@/api/access";
import { keys } from "@/api/queries";
import { changeView, deleteView, savedViewsQuery } from "@/api/savedViews";
import type { RunsPageState, SavedView, SavedViewDetail } from "@/api/types";
import { getServerAddress } from "@/lib/publicPath";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { IconBookmark, IconCheck, IconChevronDown, IconUsers } from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";
import classes from "./Runs.module.css";
import { ViewDialog } from "./ViewDialog";

interface ViewsMenuProps {
  project: string;
  /** The view that is open. */
  view: SavedViewDetail | undefined;
  /** Whether the page differs from the view that is open. */
  isChanged: boolean;
  /** What the page shows, as a view keeps it. */
  state(): Partial<RunsPageState>;
  /** Opens a view, or with `null` the page without one. */
  onOpen(id: string | null): void;
}

type Asked = "save" | "change" | "delete";

/** Opens, saves, shares and deletes views of the page. */
export function ViewsMenu({ project, view, isChanged, state, onOpen }: ViewsMenuProps) {
  const client = useQueryClient();
  const views = useQuery(savedViewsQuery(project)).data ?? [];
  const [asked, setAsked] = useState<Asked | null>(null);
  const maySave = usePermission("run.submit", project).reason;
  const mayAct = useControl();
  const refresh = () => client.invalidateQueries({ queryKey: keys.savedViews });
  const update = useMutation({
    mutationFn: (id: string) => changeView(id, { state: state() }),
    onSuccess: async (_, id) => {
      await refresh();
      onOpen(id);
      notifications.show({ message: "The view was saved" });
    },
    onError: (error) =>
      notifications.show({ color: "red", title: "The request failed", message: error.message }),
  });
  const why = (action: string) =>
    view === undefined
      ? null
      : mayAct({ project: view.project, created_by: view.owner }, `${action} this view`).reason;
  const link = `${getServerAddress()}/runs?view=${view?.id}`;
  return (
    <>
      <Menu position="bottom-end" width={300}>
        <Menu.Target>
          <Button
            variant="default"
            leftSection={<IconBookmark size={15} />}
            rightSection={<IconChevronDown size={12} />}
            maw={260}
          >
            {view === undefined ? "Views" : `${view.name}${isChanged ? " (changed)" : ""}`}
          </Button>
        </Menu.Target>
        <Menu.Dropdown mah={460} className={classes.menu ?? ""}>
          {views.length > 0 && <Menu.Label>Views of {project}</Menu.Label>}
          {views.map((one) => (
            <Menu.Item
              key={one.id}
              onClick={() => onOpen(one.id)}
              leftSection={one.id === view?.id ? <IconCheck size={14} /> : <span />}
              rightSection={<Visibility view={one} />}
            >
              <span className="clip">{one.name}</span>
            </Menu.Item>
          ))}
          {views.length === 0 && (
            <Menu.Label>A view keeps filter, order, columns, groups and charts.</Menu.Label>
          )}
          <Menu.Divider />
          <Permitted reason={maySave}>
            <Menu.Item onClick={() => setAsked("save")}>Save as a new view…</Menu.Item>
          </Permitted>
          {view !== undefined && (
            <>
              {isChanged && (
                <Permitted reason={why("change")}>
                  <Menu.Item onClick={() => update.mutate(view.id)}>
                    Save the changes to {view.name}
                  </Menu.Item>
                </Permitted>
              )}
              {isChanged && <Menu.Item onClick={() => onOpen(view.id)}>Undo the changes</Menu.Item>}
              <Menu.Item onClick={() => void copyLink(link)}>Copy the link</Menu.Item>
              <Permitted reason={why("change")}>
                <Menu.Item onClick={() => setAsked("change")}>Rename or share…</Menu.Item>
              </Permitted>
              <Permitted reason={why("delete")}>
                <Menu.Item onClick={() => setAsked("delete")}>Delete…</Menu.Item>
              </Permitted>
              <Menu.Divider />
              <Menu.Item onClick={() => onOpen(null)}>Leave the view</Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {(asked === "save" || (asked === "change" && view !== undefined)) && (
        <ViewDialog
          project={project}
          view={asked === "change" ? view : undefined}
          state={state}
          onDone={async (saved) => {
            await refresh();
            setAsked(null);
            if (asked === "save") onOpen(saved.id);
          }}
          onClose={() => setAsked(null)}
        />
      )}
      {asked === "delete" && view !== undefined && (
        <ConfirmDialog
          title={`Delete the view ${view.name}?`}
          submit="Delete the view"
          act={() => deleteView(view.id)}
          onDone={async () => {
            setAsked(null);
            onOpen(null);
            await refresh();
          }}
          onClose={() => setAsked(null)}
        >
          <p>Its link no longer works, also for those it is shared with. The runs stay.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function Visibility({ view }: { view: SavedView }) {
  return view.visibility === "project" ? (
    <span className="faint row" title={`${view.owner} shares it with the project`}>
      {view.owner} <IconUsers size={13} />
    </span>
  ) : (
    <span className="faint">private</span>
  );
}

async function copyLink(link: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(link);
    notifications.show({ message: "The link was copied" });
  } catch {
    // Browsers give pages without TLS no access to the clipboard.
    notifications.show({ title: "The link of the view", message: link, autoClose: 20_000 });
  }
}
