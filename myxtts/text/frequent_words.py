"""The most frequent short words of the languages that share an alphabet with others."""

# Words that several languages have count less, so that the lists need not be disjoint.
FREQUENT_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": "the of and to in is that it was for on are as with his they at be this from have "
        "or had by but not what all were we when your can said there each which she do how their "
        "if will up other about out many then them these so some her would make like him into "
        "time has look two more go see no way could people my than first been call who its now "
        "find long down day did get come made may part i you he me us our own over after before "
        "where most through back much only very any also just such here must should because "
        "between never under again against being those while still upon might every without "
        "another always nothing something though until away let mister one three four five six "
        "seven eight nine zero don't didn't it's i'm that's won't can't there's",
        "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als "
        "auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über "
        "einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde sei hatte "
        "kann gegen vom können schon wenn habe seine mark ihre dann unter wir soll ich eines jahr "
        "zwei diese dieser wieder keine seiner worden will zwischen immer was sagte gibt alle "
        "doch jetzt etwas weil mir mich dir dich ihm ihn ihr uns euch mein dein kein sehr hier "
        "dort wo wer warum jedoch damit ohne heute morgen abend abends muss müssen kannst hast "
        "bist du hab gehen gehe kommen gewesen würde wäre ganz ja nein viel viele andere anderen "
        "nichts",
        "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se "
        "ce il sont avec elle mais comme on ou si leur y dont aux cette ses être fait été aussi "
        "nous vous ils elles je tu me te mon ma mes ton ta son sa notre votre leurs ces tout tous "
        "toute toutes deux même bien sans peut ont avait était très encore où quand alors après "
        "avant entre sous chez vers depuis pendant rien jamais toujours moins autre autres peu "
        "beaucoup ici là oui non faire dire voir aller c'est n'est d'un d'une qu'il qu'elle j'ai "
        "l'on s'est quelque quelques chaque celui celle ceux donc car puis déjà ainsi homme jour "
        "temps étaient avoir fut suis es sommes êtes",
        "es": "de la que el en y a los del se las por un para con no una su al lo como más pero "
        "sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde "
        "quien desde todo nos durante todos uno les ni contra otros ese eso ante ellos e esto mí "
        "antes algunos qué unos yo otro otras otra él tanto esa estos mucho quienes nada muchos "
        "cual poco ella estar estas algunas algo nosotros mi mis tú te ti tu tus ellas es son era "
        "eran fue fueron ser está están estaba ha han había tiene tienen hacer hace puede pueden "
        "así bien aquí ahora siempre después cada aunque mientras dijo años día hombre vez dos "
        "tres casa nunca usted ustedes señor soy eres somos",
        "it": "di che è e la il un a per in non una sono mi ho si ma ha lo cosa con le ti da se "
        "come no ci questo qui hai sei del bene tu sì me più al mio perché solo so te era gli "
        "tutto della così mia fatto detto quando chi va suo loro quello io stato ora niente anche "
        "nel alla prima sua dei delle degli allo alle dal dalla nella nelle sul sulla sulle "
        "questa questi queste quella quelli molto poi noi voi lui lei essere avere fare dove "
        "ancora sempre mai senza tra fra dopo ogni altro altra altri altre due tre anni giorno "
        "uomo casa vita tempo hanno aveva erano fu può siamo siete abbiamo c'è cos'è dell'altro "
        "l'altro perciò quindi però oggi già tutti tutte ed",
        "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas "
        "foi ao ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela "
        "até isso ela entre era depois sem mesmo aos ter seus quem nas me esse eles estão você "
        "tinha foram essa num nem suas meu às minha têm numa pelos elas havia seja qual será nós "
        "tenho lhe deles essas esses pelas este dele tu te vocês vos lhes meus minhas teu tua "
        "nosso nossa dela esta estes estas aquele aquela isto aquilo estou estamos são somos fui "
        "tudo todos toda onde ainda sempre nunca agora aqui então porque fazer disse dois três "
        "anos dia homem casa vida tempo bem outro outra outros cada sobre pouco coisa",
        "nl": "de het een en van ik te dat die in is je niet zijn op aan met als voor had er maar "
        "om hem dan zou of wat mijn men dit zo door over ze zich bij ook tot mij uit der daar "
        "haar naar heb hoe heeft hebben deze u want nog zal me zij nu ge geen omdat iets worden "
        "toch al waren veel meer doen toen moet ben zonder kan hun dus alles onder ja eens hier "
        "wie werd altijd doch wordt wezen kunnen ons zelf tegen na reeds wil kon niets uw iemand "
        "geweest andere was hij wij jij jullie we heel erg goed moeten gaan komen weer waar "
        "waarom tussen nooit twee drie jaar dag man huis tijd leven eerste deed zei",
        "pl": "i w nie na się z do to że jest a jak o za co od po tak ale czy dla mnie ja ty on "
        "ona ono my wy oni mi ci go jej ich jego już przez tylko jeszcze był była było były być "
        "są jestem jesteś tego tym ten ta te tej tych temu który która które których przy pod nad "
        "przed bez kiedy gdy gdzie bardzo może można sobie coś ktoś nic nigdy zawsze wszystko "
        "wszyscy teraz tutaj tam więc lub oraz także też aby żeby bo ponieważ jednak niż mój moja "
        "moje swoje swój swoją nasz dwa trzy rok lat dzień czas dom człowiek życie ma mam miał "
        "mieć będzie chcę dobrze pan pani proszę we ze u",
        "cs": "a se v na je že to s z do o i ve jsem ale jako za po by pro k od si tak jak co "
        "jsou byl byla bylo byly být který která které kteří když už jen nebo až ještě také podle "
        "jeho její jejich při před mezi pod nad bez jsme jste jsi není má mají měl mít může tento "
        "tato toto této tom tím ten ta ty my vy on ona oni mě mi mu ho ji jí nás vás kde kdy proč "
        "protože aby pak tedy však velmi více něco nic nikdy vždy všechno všichni teď tady tam "
        "můj moje svůj své svou dva tři rok let den čas dům člověk život dobře ano ne pan paní "
        "řekl ze u ke",
        "hu": "a az és hogy nem is egy ez de van volt csak már meg azt ha mint ezt el ő te én mi "
        "ti ők még mert vagy kell lesz lehet minden ki be fel le át nagyon itt ott most akkor aki "
        "ami amely ahol amikor mit után előtt között alatt fölött nélkül volna lenne voltak "
        "vannak vagyok vagyunk lett egyik másik más sok kevés jó nagy két három év nap ember idő "
        "ház élet ma tegnap holnap soha mindig semmi valami valaki senki úgy így olyan ilyen hát "
        "igen pedig azonban tehát szerint által neki nekem neked őket engem téged magát saját "
        "első új ne sem sincs nincs tudom kérem",
        "tr": "ve bir bu da de için ile çok daha gibi en o ne var olarak olan ama kadar değil ki "
        "sonra her ya mi mı mu mü ben sen biz siz onlar onun benim senin bizim bana sana ona onu "
        "beni seni şey şu diye yok iki üç önce olduğu oldu olur olacak bütün hiç böyle öyle şöyle "
        "nasıl neden niçin nerede zaman gün yıl ev adam insan iş göre kendi kendine artık bile "
        "ancak çünkü eğer hem veya ise dedi etti vardı yoktu değildi idi tarafından üzerinde "
        "içinde altında arasında karşı doğru başka bazı birçok biraz şimdi burada orada evet "
        "hayır büyük iyi yeni ilk son ederim",
        # Persian and Arabic: texts are often typed without the letters that tell them apart.
        "fa": "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شد شود بود دارد اما "
        "یا هر ما من او آنها پس بعد اگر چه همه دو سه کند کرده شده باشد شما روی بین هیچ باید دیگر "
        "وقتی چون پیش نیست هستند بودند خواهد",
        "ar": "في من على إلى أن عن هذا هذه التي الذي كان كانت قد لا ما لم هو هي مع بعد كل ذلك بين "
        "عند أو ثم حتى إذا قال كما لكن غير أي منذ تلك هناك حيث لقد وقد وفي ومن الى ان او وهو",
    }.items()
}
