import { SearchIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import { useText } from '../i18n';
import { Empty } from '../parts/list';
import { PageBody } from '../parts/page';

export function NotFound() {
  const { t } = useText();
  return (
    <PageBody title={t('app.notFound')}>
      <Empty
        title={t('app.notFound')}
        help={t('app.notFoundHelp')}
        icon={SearchIcon}
        action={<Link href="/">{t('app.home')}</Link>}
      />
    </PageBody>
  );
}
