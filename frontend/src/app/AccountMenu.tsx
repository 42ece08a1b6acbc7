import { ActionIcon, Menu } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { logout } from "@/api/actions";
import { sessionQuery } from "@/api/queries";
import { IconLogout, IconSettings, IconUser, IconUsers } from "@/ui/icons";
import { useShownProject } from "./places";

/** The menu of the caller: name, pages for maintainers and administrators, and the logout. */
export function AccountMenu() {
  const session = useQuery(sessionQuery).data;
  const client = useQueryClient();
  const navigate = useNavigate();
  const project = useShownProject();
  const leave = async () => {
    await logout();
    client.clear();
    await navigate({ to: "/login", search: {} });
  };
  return (
    <Menu position="top-start">
      <Menu.Target>
        <ActionIcon aria-label="Account">
          <IconUser size={17} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown miw={210}>
        <Menu.Label>
          {session?.display_name || session?.user}
          {session?.display_name && <span className="faint"> {session.user}</span>}
        </Menu.Label>
        <Menu.Item
          leftSection={<IconUser size={15} />}
          onClick={() => void navigate({ to: "/account" })}
        >
          Account
        </Menu.Item>
        {project !== null && (
          <Menu.Item
            leftSection={<IconSettings size={15} />}
            onClick={() => void navigate({ to: "/p/$project/settings", params: { project } })}
          >
            Project {project}
          </Menu.Item>
        )}
        {session?.is_admin && (
          <Menu.Item
            leftSection={<IconUsers size={15} />}
            onClick={() => void navigate({ to: "/admin" })}
          >
            Administration
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={15} />} onClick={() => void leave()}>
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
