// Shows the sign-in page without a session, and otherwise the shell with a page.
import { lazy, Suspense, useEffect, useState } from 'react';
import { matchRoute, Route, Router, Switch, useRouter } from 'wouter';
import { asApiError } from './api/client';
import { maybeSignedIn, useSessionQuery, type Session } from './api/session';
import { withWords } from './i18n';
import { useAddress } from './lib/address';
import { ErrorAlert } from './parts/error';
import { Boundary } from './parts/boundary';
import { Dress } from './parts/brand';
import { Loading } from './parts/loading';
import { routes } from './routes';

const loadShell = () => import('./shell/shell').then((m) => ({ default: m.Shell }));
const Shell = lazy(loadShell);
const loadSignIn = () => import('./pages/sign-in').then((m) => ({ default: m.SignIn }));
const SignIn = lazy(loadSignIn);
const Sso = lazy(withWords(() => import('./pages/sso').then((m) => ({ default: m.Sso }))));
const OrganizationSignIn = lazy(
  withWords(() => import('./pages/organization-sign-in').then((m) => ({ default: m.OrganizationSignIn }))),
);
const SetPassword = lazy(withWords(() => import('./pages/set-password').then((m) => ({ default: m.SetPassword }))));
const ForgotPassword = lazy(
  withWords(() => import('./pages/forgot-password').then((m) => ({ default: m.ForgotPassword }))),
);
const SignUp = lazy(withWords(() => import('./pages/sign-up').then((m) => ({ default: m.SignUp }))));
const RequiredCodes = lazy(
  withWords(() => import('./pages/account/required').then((m) => ({ default: m.RequiredCodes }))),
);
const NotFound = lazy(withWords(() => import('./pages/not-found').then((m) => ({ default: m.NotFound }))));

function Pages({ session }: { session: Session }) {
  return (
    <Switch>
      {routes
        .filter((r) => r.when(session))
        .map(({ path, Page }) => (
          <Route key={path} path={path}>
            {({ id = '', tab = '' }: { id?: string; tab?: string }) => (
              <Page key={id} session={session} id={id} tab={tab} />
            )}
          </Route>
        ))}
      <Route>
        <NotFound />
      </Route>
    </Switch>
  );
}

/** useAhead loads what the user will see first, while the server is asked for the session. */
function useAhead(path: string) {
  const { parser } = useRouter();
  const [first] = useState(path);
  useEffect(() => {
    const route = routes.find((r) => matchRoute(parser, r.path, first)[0]);
    const seen = maybeSignedIn() ? [loadShell(), Promise.resolve(route?.Page.load())] : [loadSignIn()];
    // A page that cannot be loaded shows that itself.
    Promise.all(seen).catch(() => undefined);
  }, [parser, first]);
}

function Inside() {
  const session = useSessionQuery();
  const [path] = useAddress();
  useAhead(path);
  if (path.startsWith('/sso')) return <Sso />;
  if (path.startsWith('/password')) return <SetPassword />;
  if (path === '/sign-up' || path.startsWith('/sign-up/')) return <SignUp />;
  if (path.startsWith('/forgot')) return <ForgotPassword />;
  if (path === '/login' || path.startsWith('/login/')) return <OrganizationSignIn path={path} />;
  if (session.isPending) return <Loading />;
  if (session.isError)
    return (
      <div className="basalt-sign-in">
        <main>
          <ErrorAlert error={asApiError(session.error)} onRetry={() => void session.refetch()} />
        </main>
      </div>
    );
  if (!session.data) return <SignIn />;
  const { data } = session;
  if (data.needsTotp) return <RequiredCodes session={data} />;
  return (
    <Shell session={data} paths={routes.filter((r) => r.when(data)).map((r) => r.path)}>
      <Boundary key={path.split('/', 3).join('/')}>
        <Suspense fallback={<Loading />}>
          <Pages session={data} />
        </Suspense>
      </Boundary>
    </Shell>
  );
}

export function App() {
  return (
    <Router hook={useAddress}>
      <Dress />
      <Suspense fallback={<Loading />}>
        <Inside />
      </Suspense>
    </Router>
  );
}
