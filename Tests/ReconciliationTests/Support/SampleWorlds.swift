// Who draws random worlds, or judges worlds, tells scenes and stories, too.
@_exported import SampleShops
