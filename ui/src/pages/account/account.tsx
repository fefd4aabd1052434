// The own account: password, two-factor authentication, sessions.
import type { Session } from '../../api/session';
import { useText } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Credentials } from './credentials';
import { Sessions } from './sessions';

export function Account({ session }: { session: Session }) {
  const { t } = useText();
  return (
    <PageBody title={t('acc.title')}>
      <div className="basalt-stack">
        <Credentials session={session} />
        <Sessions />
      </div>
    </PageBody>
  );
}
