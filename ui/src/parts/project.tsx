// The current project, to which lists and forms are limited; empty means all that the session can see.
import { createContext, use, useEffect, useState, type ReactNode } from 'react';
import type { Schemas } from '../api/client';
import { useProjects } from '../api/queries';
import { seesMachines, type Session } from '../api/session';
import { useParam } from '../lib/address';

export interface ProjectChoice {
  projects: Schemas['Project'][];
  loading: boolean;
  /** ID; empty means all. */
  project: string;
  /** The project's organization, or the session's. */
  organization: string | undefined;
  choose: (id: string) => void;
}

const Context = createContext<ProjectChoice>({
  projects: [],
  loading: false,
  project: '',
  organization: undefined,
  choose: () => undefined,
});
export const useProject = () => use(Context);

const stored = 'basalt.project';
/** The parameter in the address of a list, so that a link shows the same project to others. */
export const projectParam = 'in';
const none: Schemas['Project'][] = []; // the same at each render

export function ProjectProvider({ session, children }: { session: Session; children: ReactNode }) {
  const query = useProjects(seesMachines(session));
  const projects = query.data?.items ?? none;
  const [wanted, setWanted] = useState(() => localStorage.getItem(stored) ?? '');
  const [linked, link] = useParam(projectParam);
  if (linked !== '' && linked !== wanted && projects.some((p) => p.meta.id === linked)) setWanted(linked);
  useEffect(() => localStorage.setItem(stored, wanted), [wanted]);
  const choose = (id: string) => {
    if (linked !== '') link(id);
    setWanted(id);
  };
  const project =
    session.project ??
    (projects.some((p) => p.meta.id === wanted) ? wanted : projects.length === 1 ? (projects[0]?.meta.id ?? '') : '');
  const organization = projects.find((p) => p.meta.id === project)?.meta.organization ?? session.organization;
  return <Context value={{ projects, loading: query.isLoading, project, organization, choose }}>{children}</Context>;
}
