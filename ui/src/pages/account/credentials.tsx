import type { Session } from '../../api/session';
import { useText } from '../../i18n';
import { Passkeys } from './passkeys';
import { Password } from './password';
import { OneTimeCodes } from './totp';

/** Credentials shows the user's password, two-factor authentication and passkeys, unless an identity provider
 * manages them. */
export function Credentials({ session }: { session: Session }) {
  const { t } = useText();
  if (!session.hasPassword) return <p className="basalt-note">{t('acc.elsewhere')}</p>;
  return (
    <>
      <div className="basalt-columns">
        <Password email={session.name ?? ''} />
        <OneTimeCodes email={session.name ?? ''} on={session.totp ?? false} />
      </div>
      <Passkeys email={session.name ?? ''} />
    </>
  );
}
