// The own account: password, one-time codes, sessions.
import type { Session } from '../../api/session';
import { useText } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Password } from './password';
import { Sessions } from './sessions';
import { OneTimeCodes } from './totp';

export function Account({ session }: { session: Session }) {
  const { t } = useText();
  return (
    <PageBody title={t('acc.title')}>
      <div className="basalt-stack">
        {session.hasPassword ? (
          <div className="basalt-columns">
            <Password email={session.name ?? ''} />
            <OneTimeCodes email={session.name ?? ''} on={session.totp ?? false} />
          </div>
        ) : (
          <p className="basalt-note">{t('acc.elsewhere')}</p>
        )}
        <Sessions />
      </div>
    </PageBody>
  );
}
