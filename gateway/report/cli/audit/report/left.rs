//! What commands wrote that runs by itself later.

use super::html::Html;
use super::model::Model;
use super::page::moment;

/// The section, where anything was left.
pub(super) fn left(html: &mut Html, model: &Model) {
    if model.left_in_all == 0 {
        return;
    }
    html.raw("<section aria-labelledby=\"h-left\">\n<h2 id=\"h-left\">Runs later</h2>\n<p class=\"note\">The command wrote these; somebody outside runs them. <code>outgate leftovers</code> shows the differences.</p>\n<ul class=\"denials\">\n");
    for (at, path, what) in &model.left {
        html.element("<li><p class=\"what\"><strong>", path, "</strong></p>");
        html.element("<p class=\"why\">", what, "</p>");
        html.element(
            "<p class=\"who\"><time>",
            &moment(*at),
            "</time></p></li>\n",
        );
    }
    html.raw("</ul>\n</section>\n");
}
