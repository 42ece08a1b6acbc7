/** The project shown, and what the caller may do there. */
import { createContext, useContext } from "react";
import { rememberedProject } from "@/lib/lastProject";
import type { Session } from "./types";

/** Slug of the project shown; `null` on pages over all projects. */
export const ProjectContext = createContext<string | null>(null);

export function useProject(): string | null {
  return useContext(ProjectContext);
}

/** The project to begin with: the only one, else the one shown last; `null` without either. */
export function firstProject({ projects }: Session): string | null {
  if (projects.length === 1) return projects[0]?.slug ?? null;
  const last = rememberedProject();
  return projects.some((one) => one.slug === last) ? last : null;
}
