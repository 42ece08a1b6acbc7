import { Menu, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { sessionQuery } from "@/api/queries";
import { IconCheck, IconHome, IconSelector } from "@/ui/icons";
import classes from "./ProjectSwitcher.module.css";
import { useShownProject } from "./places";

/** Chooses the project that the rail's pages show; absent for those who have only one. */
export function ProjectSwitcher() {
  const projects = useQuery(sessionQuery).data?.projects ?? [];
  const shown = useShownProject();
  const navigate = useNavigate();
  if (projects.length < 2) return null;
  const current = projects.find((one) => one.slug === shown);
  return (
    <Menu
      position="bottom-start"
      width={280}
      withinPortal
      classNames={{ dropdown: classes.list ?? "", itemLabel: classes.item ?? "" }}
    >
      <Menu.Target>
        <UnstyledButton className={classes.switcher ?? ""} aria-label="Project">
          <span className="grow">
            <span className={classes.label}>Project</span>
            <span className={classes.name}>{current?.name ?? "All projects"}</span>
          </span>
          <IconSelector size={14} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        {projects.map((one) => (
          <Menu.Item
            key={one.slug}
            onClick={() =>
              void navigate({ to: "/p/$project/experiments", params: { project: one.slug } })
            }
            rightSection={one.slug === shown ? <IconCheck size={14} /> : undefined}
          >
            <span className={classes.name}>{one.name}</span>
            <span className={classes.role}>
              {one.role}
              {one.archived && ", archived"}
            </span>
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item leftSection={<IconHome size={14} />} onClick={() => void navigate({ to: "/" })}>
          All projects
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
