import { Modal } from "@mantine/core";
import { listActiveShortcuts } from "@/lib/shortcuts";
import classes from "./ShortcutHelp.module.css";

/** Every shortcut that works on this page. */
export function ShortcutHelp({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const shortcuts = opened ? listActiveShortcuts() : [];
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard shortcuts" size="sm">
      <dl className={classes.list}>
        {shortcuts.map((one) => (
          <div key={one.keys}>
            <dt>{one.what}</dt>
            <dd>
              {one.keys.split(" ").map((key) => (
                <kbd key={key} className={classes.key}>
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
        <div>
          <dt>Zoom a chart</dt>
          <dd className="muted">drag across it</dd>
        </div>
        <div>
          <dt>Zoom back out</dt>
          <dd className="muted">double-click</dd>
        </div>
      </dl>
    </Modal>
  );
}
