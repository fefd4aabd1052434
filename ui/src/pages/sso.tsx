// The page of links that sign in (/#/sso?token=…), and of users who return from an identity provider. What the
// address contains is used once and removed from it.
import { Alert, Button, Spinner } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, ok } from '../api/client';
import { signedIn } from '../api/session';
import { useText } from '../i18n';
import { takeReturn } from '../lib/oidc';
import { ErrorAlert } from '../parts/error';
import { tokenIn } from '../parts/token';

// refused is the error of a return without a code: the provider, or the server that checked its response, refused.
const refused = new Error('refused');

let begun: Promise<unknown> | undefined; // effects run twice in development, but a token can be used once

function begin(): Promise<unknown> {
  const back = takeReturn();
  const token = tokenIn(location.hash);
  history.replaceState(null, '', '/#/sso');
  if (back && !back.code) return Promise.reject(refused);
  return back
    ? ok(api.POST('/v1/login/oidc/finish', { body: back }))
    : ok(api.POST('/v1/login/link', { body: { token: token ?? '' } }));
}

export function Sso() {
  const { t } = useText();
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const leave = () => {
    begun = undefined;
    history.replaceState(null, '', '/#/');
    dispatchEvent(new HashChangeEvent('hashchange'));
  };
  useEffect(() => {
    begun ??= begin();
    begun.then(async () => {
      leave();
      await signedIn(client);
    }, setError);
  }, [client]);
  return (
    <div className="basalt-sign-in">
      <main>
        {error ? (
          <div className="basalt-stack">
            {error === refused ? (
              <Alert component="h1" variant="warning" isInline title={t('signIn.refused')} />
            ) : (
              <>
                <Alert component="h1" variant="warning" isInline title={t('signIn.linkFailed')} />
                <ErrorAlert error={error} />
              </>
            )}
            <Button onClick={leave}>{t('signIn.other')}</Button>
          </div>
        ) : (
          <p role="status">
            <Spinner size="md" aria-hidden /> {t('signIn.wait')}
          </p>
        )}
      </main>
    </div>
  );
}
