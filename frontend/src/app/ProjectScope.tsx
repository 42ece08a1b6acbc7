import { Outlet, useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import { ProjectContext } from "@/api/access";
import { rememberProject } from "@/lib/lastProject";

/** The pages of one project, which the browser remembers as the last one. */
export function ProjectScope() {
  const { project } = useParams({ from: "/inside/p/$project" });
  useEffect(() => rememberProject(project), [project]);
  return (
    <ProjectContext value={project}>
      <Outlet />
    </ProjectContext>
  );
}
