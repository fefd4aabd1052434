// The user's own account: password, two-factor authentication, SSH keys, sessions.
import type { Session } from '../../api/session';
import { useText } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Credentials } from './credentials';
import { Sessions } from './sessions';
import { SSHKeys } from './ssh-keys';

export function Account({ session }: { session: Session }) {
  const { t } = useText();
  return (
    <PageBody title={t('acc.title')}>
      <div className="basalt-stack">
        <Credentials session={session} />
        <SSHKeys />
        <Sessions />
      </div>
    </PageBody>
  );
}
