// The same without the portal, as the basalt command and as curl.
import { ExpandableSection } from '@patternfly/react-core';
import { useText } from '../i18n';
import { request, type Request } from '../lib/same';
import { Copyable } from './copyable';

export function Same({ cli, curl }: { cli: string; curl: Request }) {
  const { t } = useText();
  return (
    <ExpandableSection toggleText={t('new.same')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('new.sameHelp')}</p>
        <Copyable label={t('new.cli')} text={cli} />
        <Copyable label={t('new.curl')} text={request(curl, location.origin)} />
      </div>
    </ExpandableSection>
  );
}
