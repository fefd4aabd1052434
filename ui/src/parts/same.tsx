// A form's request as text, to run by hand: collapsed by default.
import { ExpandableSection } from '@patternfly/react-core';
import { useText } from '../i18n';
import { Copyable } from './copyable';

/** cli is omitted if there is no command. */
export function Same({ cli, curl }: { cli?: string; curl: string }) {
  const { t } = useText();
  return (
    <ExpandableSection toggleText={t('new.same')}>
      <div className="basalt-stack" data-same>
        <p className="basalt-note">{t('new.sameHelp')}</p>
        {cli && <Copyable label={t('new.cli')} text={cli} />}
        <Copyable label={t('new.curl')} text={curl} />
      </div>
    </ExpandableSection>
  );
}
