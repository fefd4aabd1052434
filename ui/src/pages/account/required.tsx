// Users who must have a second factor and have none set one up before anything else.
import { Button } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { sessionKey, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { Passkeys } from './passkeys';
import { OneTimeCodes } from './totp';

export function RequiredCodes({ session }: { session: Session }) {
  const { t } = useText();
  const client = useQueryClient();
  return (
    <div className="basalt-sign-in">
      <main className="basalt-stack">
        <h1>{t('acc.totpRequired')}</h1>
        <p>{t('acc.totpRequiredHelp')}</p>
        <OneTimeCodes email={session.name ?? ''} on={session.totp ?? false} required />
        <Passkeys email={session.name ?? ''} />
        <div>
          <Button
            isDisabled={!session.totp && !session.passkeys}
            onClick={() => void client.invalidateQueries({ queryKey: sessionKey })}
          >
            {t('acc.goOn')}
          </Button>
        </div>
      </main>
    </div>
  );
}
