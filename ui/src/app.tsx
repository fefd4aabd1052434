// Who is not signed in sees the way in; who is, the shell with a page in it.
import { Bullseye, Spinner } from '@patternfly/react-core';
import { lazy, Suspense } from 'react';
import { Route, Router, Switch } from 'wouter';
import { useHashLocation } from 'wouter/use-hash-location';
import { asApiError } from './api/client';
import { seesMachines, seesMoney, may, useSessionQuery, type Session } from './api/session';
import { useText } from './i18n';
import { ErrorAlert } from './parts/error';
import { Boundary } from './parts/boundary';
import { SignIn } from './pages/sign-in';

const Shell = lazy(() => import('./shell/shell').then((m) => ({ default: m.Shell })));
const Sso = lazy(() => import('./pages/sso').then((m) => ({ default: m.Sso })));
const SetPassword = lazy(() => import('./pages/set-password').then((m) => ({ default: m.SetPassword })));
const Dashboard = lazy(() => import('./pages/dashboard').then((m) => ({ default: m.Dashboard })));
const Instances = lazy(() => import('./pages/instances').then((m) => ({ default: m.Instances })));
const CreateInstance = lazy(() => import('./pages/create-instance').then((m) => ({ default: m.CreateInstance })));
const InstancePage = lazy(() => import('./pages/instance').then((m) => ({ default: m.InstancePage })));
const Nodes = lazy(() => import('./pages/nodes').then((m) => ({ default: m.Nodes })));
const Usage = lazy(() => import('./pages/usage').then((m) => ({ default: m.Usage })));
const Invoices = lazy(() => import('./pages/invoices').then((m) => ({ default: m.Invoices })));
const Keys = lazy(() => import('./pages/keys').then((m) => ({ default: m.Keys })));
const Members = lazy(() => import('./pages/members').then((m) => ({ default: m.Members })));
const NotFound = lazy(() => import('./pages/not-found').then((m) => ({ default: m.NotFound })));

export function Loading() {
  const { t } = useText();
  return (
    <Bullseye>
      <Spinner aria-label={t('app.loading')} />
    </Bullseye>
  );
}

function Pages({ session }: { session: Session }) {
  return (
    <Switch>
      <Route path="/"><Dashboard session={session} /></Route>
      {seesMachines(session) && <Route path="/instances"><Instances session={session} /></Route>}
      {may(session, 'member') && <Route path="/instances/new"><CreateInstance session={session} /></Route>}
      {seesMachines(session) && <Route path="/instances/:id">{({ id }) => <InstancePage key={id} session={session} id={id} />}</Route>}
      {may(session, 'operator') && <Route path="/nodes"><Nodes /></Route>}
      <Route path="/usage"><Usage session={session} /></Route>
      {seesMoney(session) && <Route path="/invoices"><Invoices session={session} /></Route>}
      {may(session, 'admin') && <Route path="/keys"><Keys /></Route>}
      {may(session, 'admin') && <Route path="/members"><Members /></Route>}
      <Route><NotFound /></Route>
    </Switch>
  );
}

function Inside() {
  const session = useSessionQuery();
  const [path] = useHashLocation();
  if (path.startsWith('/sso')) return <Sso />;
  if (path.startsWith('/password')) return <SetPassword />;
  if (session.isPending) return <Loading />;
  if (session.isError)
    return (
      <div className="basalt-sign-in">
        <main><ErrorAlert error={asApiError(session.error)} onRetry={() => void session.refetch()} /></main>
      </div>
    );
  if (!session.data) return <SignIn />;
  const { data } = session;
  return (
    <Shell session={data}>
      <Boundary key={path}>
        <Suspense fallback={<Loading />}>
          <Pages session={data} />
        </Suspense>
      </Boundary>
    </Shell>
  );
}

export function App() {
  return (
    <Router hook={useHashLocation}>
      <Suspense fallback={<Loading />}>
        <Inside />
      </Suspense>
    </Router>
  );
}
