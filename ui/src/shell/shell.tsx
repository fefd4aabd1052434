import {
  Alert,
  FormSelect,
  FormSelectOption,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavExpandable,
  NavItem,
  NavList,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
} from '@patternfly/react-core';
import { BarsIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { applier } from '../api/live';
import { may, seesMachines, signedOut, type Session } from '../api/session';
import { follow, type Liveness } from '../api/watch';
import { hasChosen, languages, useText, type Language } from '../i18n';
import { taskStore } from '../lib/tasks';
import { Brand, Support } from '../parts/brand';
import { AlertsBell } from './alerts-bell';
import { FindButton } from './find-button';
import { isGroup, leadsTo, seen, type Entry, type Group } from './nav';
import { ProjectProvider, useProject } from '../parts/project';
import { TasksButton } from './tasks-button';
import { UserMenu } from './user-menu';

function useLive(session: Session): Liveness {
  const client = useQueryClient();
  const [state, setState] = useState<Liveness>('live');
  useEffect(() => {
    if (!seesMachines(session)) return;
    const end = new AbortController();
    const apply = applier(client, end.signal);
    follow(
      {
        since: session.revision,
        onEvent: (e) => (taskStore.note(e), apply(e)),
        onState: (s) => (s === 'ended' ? void signedOut(client) : setState(s)),
      },
      end.signal,
    );
    return () => (end.abort(), taskStore.clear());
  }, [client, session]);
  return state;
}

function ProjectSwitcher({ session }: { session: Session }) {
  const { t } = useText();
  const { projects, project, choose } = useProject();
  if (session.project || projects.length === 0) return <span />;
  return (
    <FormSelect
      className="basalt-project"
      id="project"
      aria-label={t('app.project')}
      value={project}
      onChange={(_, v) => choose(v)}
    >
      {projects.length > 1 && <FormSelectOption value="" label={t('app.allProjects')} />}
      {projects.map((p) => (
        <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.spec.displayName || p.meta.name} />
      ))}
    </FormSelect>
  );
}

const Leaf = ({ entry: e, path }: { entry: Entry; path: string }) => {
  const { t } = useText();
  return (
    <NavItem itemId={e.href} to={`#${e.href}`} isActive={leadsTo(e, path)}>
      {t(e.text)}
    </NavItem>
  );
};

/** Section is a section of the navigation. It is open while it contains the current page or after the user opened
 * it; the cluster's is open initially. */
function Section({ group: { title, entries }, path }: { group: Group; path: string }) {
  const { t } = useText();
  const here = entries.some((e) => leadsTo(e, path));
  const [open, setOpen] = useState(here || title === 'nav.cluster');
  const [was, setWas] = useState(here);
  if (was !== here) {
    setWas(here);
    if (here) setOpen(true);
  }
  return (
    <NavExpandable title={t(title)} isActive={here} isExpanded={open} onExpand={(_, on) => setOpen(on)}>
      {entries.map((e) => (
        <Leaf key={e.href} entry={e} path={path} />
      ))}
    </NavExpandable>
  );
}

const wide = 1200; // px: from this width PatternFly shows the navigation next to the page

/** useLanguageOf chooses the user's language in a browser in which none was chosen. */
function useLanguageOf(session: Session) {
  const { choose } = useText();
  const language = session.language as Language | undefined;
  useEffect(() => {
    if (language && language in languages && !hasChosen()) choose(language);
  }, [language, choose]);
}

interface ShellProps {
  session: Session;
  /** The patterns of the addresses that the session may open; search results link to them. */
  paths: readonly string[];
  children: ReactNode;
}

export function Shell({ session, paths, children }: ShellProps) {
  const { t } = useText();
  const [path] = useLocation();
  const [open, setOpen] = useState(window.innerWidth >= wide);
  const [mobile, setMobile] = useState(window.innerWidth < wide);
  const state = useLive(session);
  useLanguageOf(session);
  const masthead = (
    <Masthead display={{ default: 'inline' }}>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton
            variant="plain"
            aria-label={t('app.menu')}
            isSidebarOpen={open}
            onSidebarToggle={() => setOpen(!open)}
            id="nav-toggle"
          >
            <BarsIcon />
          </PageToggleButton>
        </MastheadToggle>
        <MastheadBrand>
          <Link href="/" className="basalt-brand">
            <Brand />
          </Link>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <div className="basalt-masthead">
          <ProjectSwitcher session={session} />
          <div className="basalt-masthead-end">
            <FindButton session={session} paths={paths} />
            <TasksButton session={session} />
            {may(session, 'operator') && <AlertsBell />}
            <UserMenu session={session} />
          </div>
        </div>
      </MastheadContent>
    </Masthead>
  );
  const sidebar = (
    <PageSidebar isSidebarOpen={open} id="sidebar">
      <PageSidebarBody>
        <Nav aria-label={t('app.nav')} onSelect={() => mobile && setOpen(false)}>
          <NavList>
            {seen(session).map((item) =>
              isGroup(item) ? (
                <Section key={item.title} group={item} path={path} />
              ) : (
                <Leaf key={item.href} entry={item} path={path} />
              ),
            )}
          </NavList>
        </Nav>
      </PageSidebarBody>
    </PageSidebar>
  );
  return (
    <ProjectProvider session={session}>
      <Page
        masthead={masthead}
        sidebar={sidebar}
        mainContainerId="content"
        skipToContent={
          <SkipToContent
            href="#content"
            onClick={(e) => (e.preventDefault(), document.getElementById('content')?.focus())}
          >
            {t('app.skip')}
          </SkipToContent>
        }
        onPageResize={(_, { windowSize }) => {
          const now = windowSize < wide;
          if (now !== mobile) {
            setMobile(now);
            setOpen(!now);
          }
        }}
      >
        <div role="status">
          {state === 'waiting' && (
            <Alert component="p" variant="warning" isInline title={t('app.waiting')}>
              {t('app.waitingHelp')}
            </Alert>
          )}
        </div>
        {children}
        <footer className="basalt-footer">
          <a href="/docs">{t('app.docs')}</a>
          <a href="/licenses.txt">{t('app.licenses')}</a>
          <Support />
        </footer>
      </Page>
    </ProjectProvider>
  );
}
